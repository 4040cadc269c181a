/** Memory files in the view that no longer say what is so: attached again later, or overwritten since. */
import type { Register } from './register-state.ts'
import type { Memory } from './registered.ts'

/** Oldest first. Pinned ones stay. */
export function staleMemories(register: Register, pins: readonly string[]): readonly Memory[] {
  if (register.memories.length === 0) return []
  const newest = new Map([...register.memories].map(({ path, place }) => [path, place]))
  const written = writtenPlaces(register)
  return [...register.memories].filter(({ path, place, uuid }) => {
    const isStale = place < (newest.get(path) ?? place) || place < (written.get(path) ?? place)
    return isStale && !pins.includes(uuid)
  })
}

/** By path: where a call that wrote the whole file was answered last. */
function writtenPlaces({ results }: Register): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const { call, place, isError } of results) {
    if (call.concern === 'write' && call.path !== null && !isError) places.set(call.path, place)
  }
  return places
}
