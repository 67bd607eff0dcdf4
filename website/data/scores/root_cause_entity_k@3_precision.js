srearena.receive("scores/root_cause_entity_k@3_precision",[[1.0,1.0,0.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
