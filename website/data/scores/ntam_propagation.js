srearena.receive("scores/ntam_propagation",[[1.0,0.902,0.7996,0.7097,1.0,0.7089]]);
