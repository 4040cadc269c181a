/** Refuses requests of a client whose session has reached a limit, in the error format of the client's provider. */
import { findLoggedLimitFailure } from '@tidemark/core/engine/call-limits'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { createRefusalResponse, LIMIT_STATUS } from '../models/client-error.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'

/** The status of a request whose cost could not be counted. SDKs do not send it again. */
const UNCOUNTED_STATUS = 400

/**
 * Returns a refusal if the session has reached a limit, or if it limits dollars and the price of the request's model is
 * unknown. Then neither the client's request nor the engine's is sent. Null if it may be sent.
 */
export async function refuseIfAtLimit(
  open: OpenSession,
  { codec, request }: { readonly codec: ProviderCodec; readonly request: Pick<ClientRequest, 'model'> },
): Promise<Response | null> {
  const { own } = open.limits
  if (own.length === 0) return null
  const { priceList } = open.model.choice
  const at = new Date(open.settings.clock.now()).toISOString()
  if (own.some(({ limits }) => limits.dollars !== undefined) && priceList(request.model, at) === null)
    return createRefusalResponse(
      codec,
      UNCOUNTED_STATUS,
      `Tidemark has a limit of dollars for this session, and the price of ${request.model} is not known. Limit turns or tokens instead.`,
    )
  const failure = await findLoggedLimitFailure(createTurnContext(open))
  return failure?.reason === 'limit' ? refuseForLimit(codec, failure.message) : null
}

/** Creates the refusal of a request whose session has reached a limit, with status 402. */
export function refuseForLimit(codec: ProviderCodec, message: string): Response {
  return createRefusalResponse(codec, LIMIT_STATUS, `Tidemark: ${message}`)
}

/** Creates the refusal (status 400) of a request that cannot be counted, although sessions have limits. */
export function refuseUncounted(codec: ProviderCodec, why: string): Response {
  return createRefusalResponse(
    codec,
    UNCOUNTED_STATUS,
    `Tidemark: there is a limit, and what this request uses could not be counted. ${why}`,
  )
}
