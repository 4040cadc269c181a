/** Requests whose answers are kept in `openai-shapes.ts`, where the compiler compares them with the types of the SDK. */
import { createManualClock, createSimulator, type Script } from '@tidemark/simulator'
import { tokens } from './ask.ts'
import {
  CHAT_FUNCTION,
  FUNCTION,
  NEW_MODEL,
  OLD_MODEL,
  postChat,
  postOpenai,
  postResponse,
} from './openai-requests.ts'

const script: Script = ({ kind, messages }) => {
  if (kind === 'compaction') return { blocks: [{ type: 'text', text: 'A summary.' }] }
  if (JSON.stringify(messages).includes('refuse'))
    return { blocks: [{ type: 'text', text: 'No.' }], stopReason: 'refusal' }
  return {
    blocks: [
      { type: 'thinking', thinking: 'Two calls.' },
      { type: 'text', text: 'Reading.' },
      { type: 'tool_use', name: 'read', input: { path: 'a' } },
      { type: 'tool_use', name: 'patch', input: { input: 'x' } },
    ],
  }
}

const patch = { type: 'custom', name: 'patch' }
const ask = {
  model: NEW_MODEL,
  input: tokens(1_100),
  tools: [FUNCTION, patch],
  reasoning: { summary: 'auto' },
}
const chatTools = [CHAT_FUNCTION, { type: 'custom', custom: { name: 'patch' } }]
const chat = { model: OLD_MODEL, messages: [{ role: 'user', content: 'go' }], tools: chatTools }

/** Returns the data of the events of a stream, without the response that some of them have whole. */
function readEvents(text: string): readonly object[] {
  return readData(text).map(({ response: _response, ...event }) => event)
}

function readData(text: string): readonly Readonly<Record<string, unknown>>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)))
}

/** Answers by name, always the same: the seed and the clock are. */
export async function collectShapes(): Promise<Readonly<Record<string, unknown>>> {
  const simulate = (options = {}): ReturnType<typeof createSimulator> =>
    createSimulator({ script, clock: createManualClock(), seed: 'shapes', ...options })
  const first = simulate()
  const response = (await postResponse(first, ask)).body
  const compared = { prompt_cache_options: { comparison_response_id: response.id } }
  const tooLong = async (overflow: string): Promise<readonly object[]> =>
    readEvents(
      (await postResponse(simulate({ window: 10, openai: { overflow } }), { ...ask, stream: true })).body,
    )
  return {
    RESPONSE: response,
    DIAGNOSED: (await postResponse(first, { ...ask, ...compared, prompt_cache_key: 'other' })).body
      .prompt_cache_diagnostics,
    INCOMPLETE: (await postResponse(first, { ...ask, max_output_tokens: 16 })).body,
    PENDING: readData((await postResponse(simulate(), { ...ask, stream: true })).body)[0]?.response,
    EVENTS: readEvents((await postResponse(simulate(), { ...ask, stream: true })).body),
    REFUSAL_EVENTS: readEvents((await postResponse(simulate(), { input: 'refuse', stream: true })).body),
    COMPACTION_EVENTS: readEvents(
      (await postResponse(simulate(), { input: [{ type: 'compaction_trigger' }], stream: true })).body,
    ),
    ERROR_EVENTS: await tooLong('flat-error-event'),
    COMPACTED: (await postOpenai(simulate(), '/responses/compact', { model: NEW_MODEL, input: 'go' })).body,
    COUNTED: (await postOpenai(simulate(), '/responses/input_tokens', { model: NEW_MODEL, input: 'go' }))
      .body,
    COMPLETION: (await postChat(simulate(), chat)).body,
    CHUNKS: readEvents(
      (await postChat(simulate(), { ...chat, stream: true, stream_options: { include_usage: true } })).body,
    ),
  }
}
