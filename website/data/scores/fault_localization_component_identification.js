srearena.receive("scores/fault_localization_component_identification",[[1.0,1.0,1.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
