/** Which files a journey enters, and how often it goes from one to another. Filled by trace-hooks.ts. */

export interface JourneyFigures {
  /** Files that the journey enters, without those of the simulator. */
  readonly files: number
  /** Changes of file while its functions are listed in the order in which each is first entered. */
  readonly changes: number
}

/** Entered functions in order, as `package/folder/file#function`; null while nothing is traced. */
let entered: Set<string> | null = null

export function recordEntry(place: string): void {
  entered?.add(place)
}

export function startTrace(): void {
  entered = new Set()
}

/** Ends the trace and counts it. `counts` selects the files; default: all but the simulator's. */
export function stopTrace(
  counts: (file: string) => boolean = (file) => !file.startsWith('simulator/'),
): JourneyFigures {
  const files = [...(entered ?? [])].map((place) => place.slice(0, place.indexOf('#'))).filter(counts)
  entered = null
  const changes = files.filter((file, index) => index > 0 && file !== files[index - 1])
  return { files: new Set(files).size, changes: changes.length }
}
