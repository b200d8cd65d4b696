-- Sales by month.
CREATE TABLE sales (
  id integer PRIMARY KEY,
  name varchar(80) NOT NULL DEFAULT 'it''s (',
  price numeric(10, 2) CHECK (price >= 0)
);

SELECT date_trunc('month', sold) AS "month", sum(price) AS total
FROM sales
WHERE name IN ('a', 'b') AND (price > 1.5 OR name LIKE '%''%')
GROUP BY 1 /* by month */
HAVING count(*) > (SELECT min(id) FROM sales);

CREATE FUNCTION total() RETURNS numeric AS $$
BEGIN
  RETURN (SELECT sum(price) FROM sales);
END;
$$ LANGUAGE plpgsql;
