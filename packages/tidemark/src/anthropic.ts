/**
 * `tidemark/anthropic`: middleware for the official client, `@anthropic-ai/sdk` 1.8 or newer. Works on every backend of
 * the client, because address and credentials are the client's.
 */
import type { Middleware } from '@anthropic-ai/sdk'
import { type ClientTidemarkOptions, createClientTidemark } from './library/client-tidemark.ts'

/** Options of `tidemark(…)`: `session`, `mode` and `pingSeconds` of `tidemark.fetch`, and the options of `createTidemark`. */
export type TidemarkMiddlewareOptions = ClientTidemarkOptions

/** Middleware with a function that closes its sessions. */
export type TidemarkMiddleware = Middleware & { readonly close: () => Promise<void> }

/**
 * Returns middleware that keeps the conversations of a client in sessions, and sends their requests instead of the
 * client's own. The model comes from the first request.
 *
 * @example const client = new Anthropic({ middleware: [tidemark({ session: 'fix-login' })] })
 */
export function tidemark(options: TidemarkMiddlewareOptions = {}): TidemarkMiddleware {
  const host = createClientTidemark(options)
  const answer: Middleware = (request, next) => {
    const { url, ...init } = request
    return host.answer(url, init as RequestInit, (input, more = {}) =>
      next({
        ...request,
        ...more,
        headers: new Headers(more.headers),
        url: input instanceof Request ? input.url : String(input),
      } as typeof request),
    )
  }
  return Object.assign(answer, { close: () => host.close() })
}
