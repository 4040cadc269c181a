import { randomUUID } from 'node:crypto'
import type { Ids } from '@tidemark/core'

/** Random uuids, whatever they are for: sessions of two machines can be put together. */
export const systemIds: Ids = { next: () => randomUUID() }
