/**
 * The provider does not know the thinking it was sent back: it was made by another account or model, or the
 * conversation before it is no longer the one it was made in. It leaves the view, whole, and the request is sent again.
 */
import { blocksOf, isThinking } from '../../conversation/block.ts'
import type { MicrocompactMetadata } from '../../conversation/metadata.ts'
import type { View } from '../../view/view.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import { append, type TurnRun } from '../turn-run.ts'
import { measureNow } from './plan-now.ts'
import type { Room } from './room.ts'

/** True: there was some, and it is gone. */
export async function* dropThinking(run: TurnRun, room: Room): AsyncGenerator<TurnEvent, boolean | Halt> {
  const clearedThinking = thinkers(run.state.view)
  if (clearedThinking.length === 0) return false
  const before = measureNow(run.state, run.host, room).expected
  const microcompactMetadata: MicrocompactMetadata = {
    trigger: 'thinking-refused',
    preTokens: before,
    tokensSaved: 0,
    compactedToolIds: [],
    clearedAttachmentUUIDs: [],
    clearedThinking,
  }
  const halt = yield* append(run, [
    {
      type: 'system',
      subtype: 'microcompact_boundary',
      content: 'Context microcompacted',
      level: 'info',
      isMeta: false,
      microcompactMetadata,
    },
  ])
  if (halt !== null) return halt
  yield { type: 'thinking-dropped', responses: clearedThinking.length }
  return true
}

/** Responses of the view that still show thinking. */
function thinkers({ entries }: View): readonly string[] {
  const ids = [...entries].flatMap(({ record, cleared }) =>
    record.type === 'assistant' &&
    cleared?.thinking !== true &&
    blocksOf(record.message.content).some(isThinking)
      ? [record.message.id]
      : [],
  )
  return [...new Set(ids)]
}
