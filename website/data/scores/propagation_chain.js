srearena.receive("scores/propagation_chain",[[1.0,0.5943,0.4812,0.6667,1.0,0.6818]]);
