/** Who is asking: either header carries the key, and the key says whose cache, limits and threads are meant. */
import type { Scope } from '../cache/key.ts'
import { type Refusal, refusal } from '../refusal.ts'

export type Headers = Readonly<Record<string, string>>

export interface Account extends Scope {}

export type Accounts = Readonly<Record<string, Account>>

export const DEFAULT_ACCOUNT: Account = {
  organization: 'org_simulated',
  workspace: 'wrkspc_simulated',
}

export type Identity =
  | { readonly ok: true; readonly account: Account }
  | { readonly ok: false; readonly refusal: Refusal }

/** With no accounts given, any key will do and all belong to one organisation. */
export function identify(headers: Headers, accounts: Accounts | undefined): Identity {
  const key = headers['x-api-key'] ?? bearer(headers.authorization)
  if (key === undefined || key === '')
    return { ok: false, refusal: refusal(401, 'x-api-key header is required') }
  const account =
    accounts === undefined ? DEFAULT_ACCOUNT : Object.hasOwn(accounts, key) ? accounts[key] : undefined
  if (account === undefined) return { ok: false, refusal: refusal(401, 'invalid x-api-key') }
  return withWorkspace(account, headers['anthropic-workspace-id'], accounts !== undefined)
}

function bearer(header: string | undefined): string | undefined {
  return header?.match(/^Bearer\s+(.+)$/i)?.[1]?.trim()
}

/** A key that belongs to one workspace may name that one and no other. */
function withWorkspace(account: Account, asked: string | undefined, belongs: boolean): Identity {
  if (asked === undefined || asked === account.workspace) return { ok: true, account }
  if (belongs)
    return {
      ok: false,
      refusal: refusal(403, `anthropic-workspace-id: this key does not belong to ${asked}`),
    }
  return { ok: true, account: { ...account, workspace: asked } }
}
