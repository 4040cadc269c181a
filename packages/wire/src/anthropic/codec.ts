/** The Messages API as a `ProviderCodec`: this file only brings the functions of this folder together. */
import type { JsonObject } from '@tidemark/core/log/json'
import type { ProviderCodec, ReplyDecoder } from '../providers/provider-codec.ts'
import { readAnthropicFailure } from './anthropic-errors.ts'
import { anthropicClientCodec } from './client-codec.ts'
import {
  type ByteStreamState,
  decodeReplyBytes,
  finishReplyBytes,
  initialByteStreamState,
} from './decode-stream.ts'
import { toCredentialHeaders } from './headers.ts'
import { encodeMessagesCall, toBetaHeader } from './incremental-request.ts'
import { decodeResponseBody } from './response-body.ts'

const decode: ReplyDecoder<ByteStreamState> = {
  initial: initialByteStreamState,
  step: decodeReplyBytes,
  finish: (state, cause) => finishReplyBytes(state, cause)[1],
}

export const anthropicCodec: ProviderCodec = {
  name: 'anthropic-messages',
  vendor: 'anthropic',
  title: 'the Messages API',
  baseUrl: 'https://api.anthropic.com',
  paths: { reply: '/v1/messages', count: '/v1/messages/count_tokens' },
  createHeaders: toCredentialHeaders,
  encode: encodeMessagesCall,
  toBody: ({ betas: _, ...body }) => body as unknown as JsonObject,
  toBodyHeaders: ({ betas = [] }) => toBetaHeader(betas),
  decode,
  decodeBody: decodeResponseBody,
  toFailure: readAnthropicFailure,
  client: anthropicClientCodec,
}
