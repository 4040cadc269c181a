/** The protocol of the made-up provider as a codec. It shares nothing with those of real providers. */
import type { Reply } from '@tidemark/core/engine/reply'
import { toBlocks } from '@tidemark/core/log/block'
import { isJsonObject, type JsonObject } from '@tidemark/core/log/json'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import type { ClientCodec, ProviderCodec, ReceivedRequest } from '@tidemark/wire/providers/provider-codec'
import { encodeTalk, toMessages, toTalk } from './talk-request.ts'
import { decodeTalkBody, talkDecoder, toTalkFailure } from './talk-stream.ts'
import { type Answer, LINES_TYPE, type Line, TALK_PATH, type Talk, type Tally, VENDOR } from './words.ts'

const client: ClientCodec = {
  findRouteKind: (path) => (path.endsWith(TALK_PATH) ? 'reply' : null),
  isOwnClient: (headers) => headers.get('x-pass') !== null,
  readRequest,
  writeRequest: ({ text, headers }) => ({ text, headers }),
  writeCount: (body) => body,
  betaHeader: null,
  bodyHeaders: ['content-type'],
  argumentsAs: 'text',
  readConversationNames: (headers) => [headers.get('x-talk')].filter((name) => name !== null),
  isSideCall: ({ tools }) => (tools ?? []).length === 0,
  ping: writeLine({ is: 'hush' }),
  createErrorBody: (_, words) => ({ trouble: { name: 'muddle', words } }),
  writeErrorEvent: (body) => writeLine({ is: 'trouble', name: 'muddle', words: body }),
  writeReply(reply, isStream) {
    const lines = toLines(reply)
    return isStream ? lines.map(writeLine).join('') : JSON.stringify(toAnswer(lines))
  },
  removeThinking: (body) => body,
  thinkingFilter: { initial: null, step: (state, chunk) => [state, chunk] },
}

export const talkCodec: ProviderCodec = {
  name: 'made-up-talk',
  vendor: VENDOR,
  title: 'the talk of the made-up provider',
  baseUrl: 'https://made-up.example',
  paths: { reply: TALK_PATH },
  streamType: LINES_TYPE,
  createHeaders: ({ secret }) => ({ 'x-pass': secret, 'content-type': 'application/json' }),
  encode: encodeTalk,
  toBody: (payload) => toTalk(payload) as unknown as JsonObject,
  toBodyHeaders: () => ({}),
  decode: talkDecoder,
  decodeBody: decodeTalkBody,
  toFailure: toTalkFailure,
  client,
}

function readRequest({ body }: ReceivedRequest): ClientRequest | null {
  const { engine, charter = [], instruments = [], entries, flow, ...parameters } = body
  if (typeof engine !== 'string' || !Array.isArray(entries) || !Array.isArray(instruments)) return null
  const tools = instruments.filter(isJsonObject).map(({ label = '', purpose = '', shape = {} }) => ({
    name: label,
    description: purpose,
    input_schema: shape,
  }))
  return {
    model: engine,
    system: charter as readonly string[],
    tools,
    messages: toMessages((body as unknown as Talk).entries),
    parameters,
    ownFields: flow === undefined ? {} : { flow },
    isStream: flow === 'lines',
    markers: [],
    ttl: undefined,
    continues: null,
    findExactBlock: null,
  }
}

export function writeLine(line: Line): string {
  return `${JSON.stringify(line)}\n`
}

/** Returns an answer that is not streamed. */
export function toAnswer(lines: readonly Line[]): Answer {
  const hello = lines.find((line) => line.is === 'hello')
  const bye = lines.find((line) => line.is === 'bye')
  if (hello === undefined || bye === undefined)
    throw new Error('An answer begins with hello and ends with bye.')
  return { ticket: hello.ticket, engine: hello.engine, because: bye.because, tally: bye.tally, lines }
}

function toLines({ message, usage }: Reply): readonly Line[] {
  const { id, model, content, because } = message
  const [entry] = toTalk({ model, messages: [{ role: 'assistant', content: toBlocks(content) }] }).entries
  const { mused = [], says = [], wants = [] } = entry?.who === 'engine' ? entry : {}
  const tally: Tally =
    usage === undefined
      ? { heard: 0, recalled: 0, spoken: 0 }
      : { heard: usage.input + usage.read, recalled: usage.read, spoken: usage.output }
  return [
    { is: 'hello', ticket: id, engine: model },
    ...mused.map((seal): Line => ({ is: 'mused', ...seal })),
    ...says.map((piece): Line => ({ is: 'says', piece })),
    ...wants.flatMap(({ ref, label, given }): readonly Line[] => [
      { is: 'want', ref, label },
      { is: 'given', piece: given },
    ]),
    {
      is: 'bye',
      because: typeof because === 'string' ? because : wants.length > 0 ? 'waiting' : 'content',
      tally,
    },
  ]
}
