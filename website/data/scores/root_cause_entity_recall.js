srearena.receive("scores/root_cause_entity_recall",[[1.0,1.0,0.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
