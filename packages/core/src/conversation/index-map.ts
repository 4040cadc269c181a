/**
 * From a key to the place of the first item that had it, as a value: the companion of `List`. `add` gives a
 * larger map and leaves the smaller one as it was; both share one table while there is one line of descent.
 */
export class IndexMap {
  /** Key → how many came before it; `#places` has the place of each in that order. */
  readonly #order: Map<string, number>
  readonly #places: number[]
  readonly #size: number

  private constructor(order: Map<string, number>, places: number[]) {
    this.#order = order
    this.#places = places
    this.#size = places.length
  }

  static empty(): IndexMap {
    return new IndexMap(new Map(), [])
  }

  get(key: string): number | undefined {
    const order = this.#order.get(key)
    return order !== undefined && order < this.#size ? this.#places[order] : undefined
  }

  /** The first place counts: adding a key again changes nothing. */
  add(key: string, place: number): IndexMap {
    if (this.get(key) !== undefined) return this
    const { order, places } = this.#places.length === this.#size ? this.#shared() : this.#copy()
    order.set(key, places.length)
    places.push(place)
    return new IndexMap(order, places)
  }

  #shared(): { readonly order: Map<string, number>; readonly places: number[] } {
    return { order: this.#order, places: this.#places }
  }

  #copy(): { readonly order: Map<string, number>; readonly places: number[] } {
    const own = [...this.#order].filter(([, order]) => order < this.#size)
    return { order: new Map(own), places: this.#places.slice(0, this.#size) }
  }
}
