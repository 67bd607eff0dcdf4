srearena.receive("scores/ntam_fault_localization",[[1.0,1.0,0.4783,1.0,1.0,1.0]]);
