/** What is answered to a valid request: a message, a summary, or nothing but a warm cache. */
import { isObject } from '../api.ts'
import { answerMessage, type Call, type MadeResponse, warm } from './answer-message.ts'
import { compactFirst, compactOnDemand, isOverThreshold } from './compact.ts'
import type { Prepared } from './prepare.ts'
import type { World } from './world.ts'

export async function respond(world: World, prepared: Prepared, call: Call): Promise<MadeResponse> {
  const { body } = prepared
  if (body.max_tokens === 0) return warm(world, prepared, call)
  if (isObject(body.compaction)) return compactOnDemand(world, prepared, call)
  const first = isOverThreshold(prepared)
  return first ? compactFirst(world, prepared, call) : answerMessage(world, prepared, call)
}
