/**
 * An S3-compatible store for what is too large for rows of the database. Requests are signed (AWS Signature Version 4),
 * and the hash of each object is part of its request, so that a store refuses damaged bytes.
 */
import { createHash, randomUUID } from 'node:crypto'
import { TidemarkError } from '@tidemark/core/errors'
import { AwsClient } from 'aws4fetch'

export interface ObjectStore {
  /** Stores an object. It is durable when the call returns. */
  put(name: string, bytes: Uint8Array): Promise<void>
  /** Returns an object; null if there is none. */
  get(name: string): Promise<Uint8Array | null>
  /** Deletes an object. Does nothing if there is none. */
  delete(name: string): Promise<void>
}

type Environment = Readonly<Record<string, string | undefined>>

/** Time limit for one request with its retries. */
const REQUEST_MS = 30_000
/** Retries of a request that the store answers with 429 or 5xx. */
const RETRIES = 3

/**
 * Creates the client of a store at an address such as `https://s3.eu-central-1.amazonaws.com/bucket/folder`, with credentials and
 * region from `env`. Sends nothing yet. Throws `bad-option` for a wrong address or missing credentials.
 */
export function openObjectStore(address: string, env: Environment): ObjectStore {
  const base = checkAddress(address)
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (!accessKeyId || !secretAccessKey)
    throw badObjectsError('set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the store.')
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    ...(env.AWS_SESSION_TOKEN ? { sessionToken: env.AWS_SESSION_TOKEN } : {}),
    service: 's3',
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1',
    retries: RETRIES,
  })

  async function send(method: string, name: string, bytes: Uint8Array | null = null): Promise<Response> {
    const hash = createHash('sha256').update(bytes ?? '')
    const response = await client.fetch(`${base}/${name}`, {
      method,
      headers: { 'x-amz-content-sha256': hash.digest('hex') },
      signal: AbortSignal.timeout(REQUEST_MS),
      ...(bytes === null ? {} : { body: bytes as Uint8Array<ArrayBuffer> }),
    })
    if (response.ok) return response
    const text = await response.text()
    const code = /<Code>([\w.]{1,100})<\/Code>/.exec(text)?.[1] ?? ''
    if (response.status === 404 && code !== 'NoSuchBucket') return response
    throw new TidemarkError('io-failed', `The object store answers ${method} with ${response.status} ${code}`)
  }

  return {
    async put(name, bytes) {
      const response = await send('PUT', name, bytes)
      await response.body?.cancel()
      if (!response.ok) throw new TidemarkError('io-failed', `The object store has no place for ${name}.`)
    },
    async get(name) {
      const response = await send('GET', name)
      if (response.ok) return new Uint8Array(await response.arrayBuffer())
      await response.body?.cancel()
      return null
    },
    async delete(name) {
      await (await send('DELETE', name)).body?.cancel()
    },
  }
}

/** Stores and deletes a small object, to find a wrong address or credential at the start. Throws `io-failed`. */
export async function probeObjectStore(store: ObjectStore): Promise<void> {
  const name = `tidemark-check/${randomUUID()}`
  try {
    await store.put(name, new TextEncoder().encode('A check of the gateway at its start.'))
    await store.delete(name)
  } catch (thrown) {
    const why = thrown instanceof Error ? (thrown.cause instanceof Error ? thrown.cause : thrown).message : ''
    const message = `The object store cannot be used: ${why}. Check --objects, the credentials and AWS_REGION.`
    throw new TidemarkError('io-failed', message, { cause: thrown })
  }
}

function checkAddress(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && /^\/[^/]/.test(url.pathname)
  if (!isAddress || `${url.username}${url.password}${url.search}${url.hash}` !== '')
    throw badObjectsError('expected an address with a bucket, such as https://s3.example.com/bucket.')
  return url.href.replace(/\/+$/, '')
}

function badObjectsError(message: string): TidemarkError {
  return new TidemarkError('bad-option', `objects: ${message}`, { details: { option: 'objects' } })
}
