/** Measures by how much the heap grows while a session works, and how many bytes enter the context meanwhile. */
import { getHeapCodeStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { SessionEvent } from 'tidemark'

export interface HeapGrowth {
  readonly bytes: number
  /** Bytes of the messages and attachments that were appended meanwhile. */
  readonly appended: number
}

export interface HeapWatch {
  add(event: SessionEvent): void
  measure(): void
  /** Growth between the first and the second measurement; null if there were fewer. */
  growth(): HeapGrowth | null
}

export function createHeapWatch(): HeapWatch {
  let appended = 0
  const measured: HeapGrowth[] = []
  return {
    add(event) {
      if (event.type === 'appended') appended += countMessageBytes(event)
    },
    measure() {
      measured.push({ bytes: measureHeap(), appended })
    },
    growth() {
      const [first, last] = measured
      if (first === undefined || last === undefined) return null
      return { bytes: last.bytes - first.bytes, appended: last.appended - first.appended }
    },
  }
}

/** Counts the bytes of what entered the context: messages and attachments. */
function countMessageBytes({ records }: Extract<SessionEvent, { readonly type: 'appended' }>): number {
  const contents = records.flatMap((record): readonly unknown[] => {
    if ('message' in record) return [record.message]
    return 'attachment' in record ? [record.attachment] : []
  })
  return contents.reduce<number>((sum, content) => sum + Buffer.byteLength(JSON.stringify(content)), 0)
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Returns the bytes of all objects that are in use. Compiled code, which grows with what has run, does not count. */
function measureHeap(): number {
  collectGarbage()
  collectGarbage()
  const { code_and_metadata_size, bytecode_and_metadata_size } = getHeapCodeStatistics()
  return process.memoryUsage().heapUsed - code_and_metadata_size - bytecode_and_metadata_size
}
