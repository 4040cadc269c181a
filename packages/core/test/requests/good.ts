/** Requests with nothing wrong: every feature at least once. */
import { goodFeatures } from './good-features.ts'
import { goodTurns } from './good-turns.ts'
import type { GoodRequest } from './make.ts'

export const goodRequests: readonly GoodRequest[] = [...goodTurns, ...goodFeatures]
