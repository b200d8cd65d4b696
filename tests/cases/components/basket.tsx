import { useMemo, useState } from "react";
import type { Item, Money } from "./shop";

interface Props<T extends Item = Item> {
  items: readonly T[];
  currency?: "EUR" | "USD";
  onRemove?: (item: T, index: number) => void;
}

type Sums = Record<Item["id"], Money>;

const sum = <T extends Item,>(items: readonly T[]): number => items.reduce((all, item) => all + item.price * item.count, 0);

export function Basket({ items, currency = "EUR", onRemove }: Props) {
  const [open, setOpen] = useState<boolean>(false);
  const sums = useMemo(() => {
    const found = {} as Sums;
    for (const item of items) {
      found[item.id] = { amount: item.price * item.count, currency };
    }
    return found satisfies Sums;
  }, [items, currency]);

  if (items.length === 0) {
    return <p className="empty">Nothing here yet.</p>;
  }
  return (
    <section aria-label="basket">
      <h2 onClick={() => setOpen(!open)}>
        {items.length} {items.length === 1 ? "item" : "items"}, {sum(items).toFixed(2)} {currency}
      </h2>
      {open && (
        <ul>
          {items.map((item, index) => (
            <Row key={item.id} item={item} sum={sums[item.id]!}>
              <button type="button" disabled={!onRemove} onClick={() => onRemove?.(item, index)}>
                Remove
              </button>
            </Row>
          ))}
        </ul>
      )}
      <>
        <hr />
        <small title={`as of ${new Date().toISOString()}`}>without shipping &amp; taxes</small>
      </>
    </section>
  );
}

function Row<T extends Item>(props: { item: T; sum: Money; children?: React.ReactNode }): JSX.Element {
  const { item, sum, children } = props;
  return (
    <li data-id={item.id} {...item.attributes}>
      {item.name}: {sum.amount / 100} {sum.currency}
      {children}
    </li>
  );
}
