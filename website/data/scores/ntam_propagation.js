srearena.receive("scores/ntam_propagation",[[1.0,0.902,0.7996,1.0,1.0,0.9118],[0.0,0.0,0.0,0.0,0.0,0.0]]);
