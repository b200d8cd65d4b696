// The items that a request showed last, so that a key can hide them and show them again. Independent of VS Code.

export class LastShown<Items> {
  private place = "";
  private items: Items | undefined;

  /** True while a key asks, which wants the same items again rather than alternatives. */
  isAskedByKey = false;

  /** Returns the items for a key at the place where they were shown. */
  again(place: string): Items | undefined {
    return this.isAskedByKey && place === this.place ? this.items : undefined;
  }

  /** Notes the items of a request. */
  note(place: string, items: Items): void {
    this.place = place;
    this.items = items;
  }
}
