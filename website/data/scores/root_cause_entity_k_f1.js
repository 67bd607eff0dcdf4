srearena.receive("scores/root_cause_entity_k_f1",[[1.0,1.0,0.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
