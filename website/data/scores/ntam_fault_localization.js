srearena.receive("scores/ntam_fault_localization",[[1.0,1.0,0.6471,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
