/** A payload that somebody else put together, as a request: nothing of it is marked, and nothing read from a cache. */
import { blocksOf } from '../../conversation/block.ts'
import type { JsonObject } from '../../conversation/json.ts'
import { List } from '../../conversation/list.ts'
import type { AssembledRequest } from '../../prompt/assemble.ts'
import { countMessages } from '../../prompt/count.ts'
import type { Front } from '../../prompt/front.ts'
import type { StandingEpoch } from '../../prompt/told.ts'
import type { FlatMessage } from '../../view/draft.ts'
import type { Payload } from '../../view/payload.ts'
import type { SessionState } from '../session-state.ts'

type Raw = readonly (ReadonlyMap<number, string> | undefined)[]

export function plainRequest({ told }: SessionState, payload: Payload, raw: Raw): AssembledRequest {
  const tail = payload.messages.map((message, index): FlatMessage => {
    const text = raw[index]
    return text === undefined ? { message, origins: [] } : { message, origins: [], raw: text }
  })
  const list = { frozen: List.of<FlatMessage>(), tail }
  return {
    front: frontOf({ ...payload, messages: [] }, told.standing ?? NO_EPOCH),
    messages: list,
    counted: countMessages(list, false),
    markers: [],
    ttl: null,
    extra: {},
    refers: false,
  }
}

const NO_EPOCH: StandingEpoch = {
  uuid: '',
  epoch: { sections: [], tools: [], model: '', parameters: {} },
  parameters: {},
  isFresh: true,
}

function frontOf(
  { model, system, tools, messages: _, ...parameters }: Payload,
  standing: StandingEpoch,
): Front {
  const blocks = system === undefined ? [] : blocksOf(system)
  return {
    model,
    parameters: JSON.parse(JSON.stringify(parameters)) as JsonObject,
    tools: tools ?? [],
    system: blocks.map((block) => ({ part: 'dynamic', sections: [], block })),
    lastSharedTool: null,
    isShareable: false,
    standing,
  }
}
