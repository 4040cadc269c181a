/**
 * The `encrypted_content` of reasoning and compaction items. Clients cannot read it. It is bound to the account for
 * which it was created, and refused if altered. A server that was restarted with the same seed can read it.
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { isObject } from '../../protocol/messages-request.ts'
import { createOpenaiError, type OpenaiError } from '../openai-error.ts'

interface SealedContent {
  readonly kind: 'reasoning' | 'compaction'
  readonly text: string
  /** Tokens that the content takes in a prompt. */
  readonly tokens: number
}

export interface ItemSealer {
  /** Encrypts the content of an item for one account. Equal items give equal texts. */
  seal(content: SealedContent, organization: string, itemId: string): string
  /** Returns the content; null if it was made for another account, or altered. */
  open(text: string, organization: string): SealedContent | null
}

/** The beginning of the provider's encrypted content. */
const PREFIX = 'gAAAAA'
const IV_BYTES = 12
const TAG_BYTES = 16
/** Maximum number of decrypted contents that are cached. */
const MAX_OPENED = 10_000

export function createItemSealer(seed: string): ItemSealer {
  const key = hash('sha256', `${seed}/openai-items`, 'buffer')
  // A cache of decrypted contents, because clients send every item again with each request.
  const opened = new Map<string, { readonly organization: string; readonly content: SealedContent }>()
  return {
    seal(content, organization, itemId) {
      const iv = hash('sha256', `${seed}/${itemId}/${content.text}`, 'buffer').subarray(0, IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(organization))
      const body = Buffer.concat([cipher.update(JSON.stringify(content)), cipher.final()])
      return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')
    },
    open(text, organization) {
      const known = opened.get(text)
      if (known?.organization === organization) return known.content
      const content = decrypt(text, organization)
      if (content === null) return null
      if (opened.size >= MAX_OPENED) opened.clear()
      opened.set(text, { organization, content })
      return content
    },
  }

  function decrypt(text: string, organization: string): SealedContent | null {
    if (!text.startsWith(PREFIX)) return null
    try {
      const all = Buffer.from(text.slice(PREFIX.length), 'base64url')
      // The same bytes have several spellings in base64. Any other spelling counts as altered.
      if (all.toString('base64url') !== text.slice(PREFIX.length)) return null
      const decipher = createDecipheriv('aes-256-gcm', key, all.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(organization))
      decipher.setAuthTag(all.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const body = Buffer.concat([decipher.update(all.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
      const value: unknown = JSON.parse(body.toString('utf8'))
      // The cast is safe because only `seal` creates text that passes the authentication.
      return isObject(value) ? (value as unknown as SealedContent) : null
    } catch {
      return null
    }
  }
}

/** Creates the error for content that cannot be decrypted. */
export function createUnreadableError(text: string): OpenaiError {
  const shown = `${text.slice(0, 4)}...${text.slice(-4)}`
  return createOpenaiError(
    400,
    `The encrypted content ${shown} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
    { code: 'invalid_encrypted_content' },
  )
}
