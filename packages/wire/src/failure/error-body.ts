/** What a refusal says, whoever sent it: one shape read out of the many that providers and proxies use. */
import { isObject, type Json, type JsonObject, readJson } from '@tidemark/core'
import { given } from '../optional-fields.ts'

export interface ErrorBody {
  /** Empty where the body was. */
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly requestId?: string
  readonly details?: JsonObject
  /** The error object itself, for figures that some put beside the message. */
  readonly fields: JsonObject
  /** What a provider further back said, where a router passes it on. */
  readonly inner?: string
}

/** A page of HTML or a stack says no more in a thousand lines than in its first. */
const LONGEST_PLAIN = 2000

export function readErrorBody(text: string): ErrorBody {
  const value = readJson(text)
  const body: Json | undefined = Array.isArray(value) ? value[0] : value
  if (isObject(body)) return fromObject(body)
  return { message: (typeof body === 'string' ? body : text).trim().slice(0, LONGEST_PLAIN), fields: {} }
}

function fromObject(body: JsonObject): ErrorBody {
  const error = errorIn(body)
  const details = isObject(error.details) ? error.details : undefined
  const type = firstText(error.type, error.__type, error.status)
  const code = firstText(details?.error_code, error.code)
  const requestId = firstText(body.request_id, error.request_id)
  const inner = isObject(error.metadata) ? firstText(error.metadata.raw) : undefined
  return {
    message: messageOf(error, body),
    ...given({ type, code, requestId, details, inner }),
    fields: error,
  }
}

/** Some streams tell of a failed response with the error inside it. */
function errorIn({ response, ...body }: JsonObject): JsonObject {
  if (isObject(body.error)) return body.error
  return isObject(response) && isObject(response.error) ? response.error : body
}

function messageOf(error: JsonObject, body: JsonObject): string {
  const said = firstText(error.message, error.Message, error.error, error.detail, error.msg)
  if (said !== undefined) return said
  const first: Json | undefined = Array.isArray(body.errors) ? body.errors[0] : error.detail
  return (isObject(first) ? firstText(first.message, first.msg) : undefined) ?? JSON.stringify(body)
}

function firstText(...values: readonly (Json | undefined)[]): string | undefined {
  for (const value of values) {
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number') return String(value)
  }
  return undefined
}
