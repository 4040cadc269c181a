/** The Messages API as a `ProviderCodec`: this file only brings the functions of this folder together. */
import type { JsonObject } from '@tidemark/core/log/json'
import type { ProviderCodec, ReplyDecoder } from '../providers/provider-codec.ts'
import { toAnthropicFailure } from './anthropic-errors.ts'
import { messagesClientCodec } from './client-codec.ts'
import {
  type ByteStreamState,
  decodeReplyBytes,
  finishReplyBytes,
  initialByteStreamState,
} from './decode-stream.ts'
import { toAuthorizedHeaders } from './headers.ts'
import { encodeModelCall, toBetaHeader } from './incremental-request.ts'
import { decodeResponse } from './response.ts'

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
  authorize: toAuthorizedHeaders,
  encode: encodeModelCall,
  toBody: ({ betas: _, ...body }) => body as unknown as JsonObject,
  toBodyHeaders: ({ betas = [] }) => toBetaHeader(betas),
  decode,
  decodeBody: decodeResponse,
  toFailure: toAnthropicFailure,
  client: messagesClientCodec,
}
