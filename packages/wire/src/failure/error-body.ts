/** Reads the body of an error response into one shape, from the various forms that providers and proxies use. */
import { isObject, type Json, type JsonObject, omitUndefined, parseJson } from '@tidemark/core/log/json'

export interface ErrorBody {
  /** Error message; empty if the body was empty. */
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly requestId?: string
  readonly details?: JsonObject
  /** The whole error object. Some providers put token counts in fields beside the message. */
  readonly fields: JsonObject
  /** Error text of the upstream provider, if a router passes it on; otherwise absent. */
  readonly inner?: string
}

/** Maximum number of characters kept of an error message that is not JSON, such as an HTML page. */
const MAX_PLAIN_LENGTH = 2000

export function readErrorBody(text: string): ErrorBody {
  const value = parseJson(text)
  const body: Json | undefined = Array.isArray(value) ? value[0] : value
  if (isObject(body)) return readErrorObject(body)
  return { message: (typeof body === 'string' ? body : text).trim().slice(0, MAX_PLAIN_LENGTH), fields: {} }
}

function readErrorObject(body: JsonObject): ErrorBody {
  const error = findErrorObject(body)
  const details = isObject(error.details) ? error.details : undefined
  const type = findFirstText(error.type, error.__type, error.status)
  const code = findFirstText(details?.error_code, error.code)
  const requestId = findFirstText(body.request_id, error.request_id)
  const inner = isObject(error.metadata) ? findFirstText(error.metadata.raw) : undefined
  return {
    message: findMessage(error, body),
    ...omitUndefined({ type, code, requestId, details, inner }),
    fields: error,
  }
}

/** Returns the error object in a response body. Some event streams put it inside a failed `response` object. */
function findErrorObject({ response, ...body }: JsonObject): JsonObject {
  if (isObject(body.error)) return body.error
  return isObject(response) && isObject(response.error) ? response.error : body
}

function findMessage(error: JsonObject, body: JsonObject): string {
  const message = findFirstText(error.message, error.Message, error.error, error.detail, error.msg)
  if (message !== undefined) return message
  const first: Json | undefined = Array.isArray(body.errors) ? body.errors[0] : error.detail
  return (isObject(first) ? findFirstText(first.message, first.msg) : undefined) ?? JSON.stringify(body)
}

function findFirstText(...values: readonly (Json | undefined)[]): string | undefined {
  for (const value of values) {
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number') return String(value)
  }
  return undefined
}
