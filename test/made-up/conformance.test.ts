/** Every codec passes one list of cases. A new codec is one line of the table. */
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { chatCodec, createChatCodec } from '@tidemark/wire/openai/chat-codec'
import { DIALECTS } from '@tidemark/wire/openai/dialects'
import { responsesCodec } from '@tidemark/wire/openai/responses-codec'
import { describe, it } from 'vitest'
import { CODEC_CASES, type CodecSubject } from '../support/codec-conformance.ts'
import { talkCodec } from '../support/made-up-provider/talk-codec.ts'

const TOO_LONG = { code: 'context_length_exceeded', message: 'Your input exceeds the context window.' }
const OPENAI_OVERFLOW = { status: 400, body: JSON.stringify({ error: TOO_LONG }) }
const MESSAGES_TOO_LONG = {
  type: 'invalid_request_error',
  message: 'prompt is too long: 210000 tokens > 200000 maximum',
}
const MESSAGES_USAGE = {
  input_tokens: 700,
  cache_read_input_tokens: 300,
  cache_creation_input_tokens: 0,
  output_tokens: 50,
}
const RESPONSES_USAGE = {
  input_tokens: 1_000,
  input_tokens_details: { cached_tokens: 300 },
  output_tokens: 50,
}
const CHAT_USAGE = {
  prompt_tokens: 1_000,
  prompt_tokens_details: { cached_tokens: 300 },
  completion_tokens: 50,
}
const TALK_OVERFLOW = { trouble: { name: 'brimful', words: 'No more fits in here', asked: 9, room: 8 } }

// biome-ignore format: one line for each codec.
const SUBJECTS: readonly CodecSubject[] = [
  { codec: anthropicCodec, ending: { stop_reason: 'end_turn' }, usage: MESSAGES_USAGE, overflow: { status: 400, body: JSON.stringify({ type: 'error', error: MESSAGES_TOO_LONG }) } },
  { codec: responsesCodec, ending: {}, usage: RESPONSES_USAGE, overflow: OPENAI_OVERFLOW },
  { codec: chatCodec, ending: {}, usage: CHAT_USAGE, overflow: OPENAI_OVERFLOW },
  { codec: createChatCodec(DIALECTS.vllm), ending: {}, usage: CHAT_USAGE, overflow: OPENAI_OVERFLOW },
  { codec: talkCodec, ending: {}, usage: {}, overflow: { status: 422, body: JSON.stringify(TALK_OVERFLOW) } },
]

describe.each(SUBJECTS.map((subject) => [subject.codec.name, subject] as const))(
  'the codec %s',
  (_, subject) => {
    it.each(CODEC_CASES.map(({ name, check }) => [name, check] as const))('%s', (__, check) => check(subject))
  },
)
