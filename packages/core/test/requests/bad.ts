/** Every bad request there is: at least one for each code. */
import { badCache } from './bad-cache.ts'
import { badEdits } from './bad-edits.ts'
import { badShapes } from './bad-shapes.ts'
import { badSizes } from './bad-sizes.ts'
import { badSummaries } from './bad-summaries.ts'
import { badThinking } from './bad-thinking.ts'
import { badTools } from './bad-tools.ts'
import { badTurns } from './bad-turns.ts'
import type { BadRequest } from './make.ts'

export const badRequests: readonly BadRequest[] = [
  ...badShapes,
  ...badTurns,
  ...badTools,
  ...badThinking,
  ...badCache,
  ...badEdits,
  ...badSummaries,
  ...badSizes,
]
