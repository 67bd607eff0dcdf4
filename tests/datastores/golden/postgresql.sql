CREATE SCHEMA catalog;
CREATE TABLE catalog.products (id VARCHAR(20) PRIMARY KEY, name TEXT NOT NULL, price_units BIGINT, on_sale BOOLEAN DEFAULT false);
INSERT INTO catalog.products VALUES ('OLJCESPC7Z', 'Explorascope', 101), ('66VCHSJNUP', 'Starsense', 349);
INSERT INTO catalog.products (id, name) VALUES ('HQTGWGPNH4', 'The Comet Book');
SELECT * FROM catalog.products ORDER BY id;
SELECT count(*), sum(price_units), max(name) FROM catalog.products;
SELECT name, price_units * 2 AS twice FROM catalog.products WHERE price_units > 200;
SELECT id FROM catalog.products WHERE name LIKE 'Star%';
UPDATE catalog.products SET price_units = 5 WHERE id = 'HQTGWGPNH4';
DELETE FROM catalog.products WHERE id = 'none';
SELECT zz9 FROM catalog.products;
SELECT * FROM nope;
SELEC 1;
SELECT 1 + 1;
SELECT 'a' || 'b' AS joined, NULL AS nil;
BEGIN;
DELETE FROM catalog.products;
SELECT count(*) FROM catalog.products;
ROLLBACK;
SELECT count(*) FROM catalog.products;
LOCK TABLE catalog.products;
COMMIT;
CREATE USER shopper WITH PASSWORD 'x';
CREATE USER shopper;
GRANT SELECT ON catalog.products TO shopper;
SELECT has_table_privilege('shopper', 'catalog.products', 'SELECT');
DROP TABLE catalog.missing;
\dt catalog.*
\d catalog.products
\dn
SELECT * FROM catalog.products WHERE false;
DROP SCHEMA catalog;
TRUNCATE catalog.products;
