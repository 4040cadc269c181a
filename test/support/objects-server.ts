/**
 * An S3-compatible server for tests, written from the documentation of Amazon S3 (PutObject, GetObject, DeleteObject, and "Signature Calculations for the
 * Authorization Header"). It checks the signature of each request and the hash of its body.
 */
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'

export interface ObjectServer {
  /** Address of an empty bucket. */
  readonly url: string
  /** Credentials and region, as variables of the environment. */
  readonly env: Readonly<Record<string, string>>
  /** Names of the objects in the bucket. */
  list(): readonly string[]
  stop(): Promise<void>
}

const ENV = {
  AWS_ACCESS_KEY_ID: 'AKIATEST',
  AWS_SECRET_ACCESS_KEY: 'secret/of+tests',
  AWS_REGION: 'eu-test-1',
}
const BUCKET = '/logs/'

export async function startObjects(): Promise<ObjectServer> {
  const objects = new Map<string, Buffer>()
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    const [status, answer] = answerObject(objects, request, body)
    const type = status < 300 ? 'application/octet-stream' : 'application/xml'
    response.writeHead(status, { 'content-type': type }).end(answer)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}${BUCKET.slice(0, -1)}`,
    env: ENV,
    list: () => [...objects.keys()],
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answerObject(
  objects: Map<string, Buffer>,
  request: IncomingMessage,
  body: Buffer,
): [status: number, answer: Buffer | string] {
  const { method, url = '', headers } = request
  const name = url.slice(BUCKET.length)
  if (headers.authorization !== signRequest(request)) return refuse(403, 'SignatureDoesNotMatch')
  if (headers['x-amz-content-sha256'] !== hash(body)) return refuse(400, 'XAmzContentSHA256Mismatch')
  if (!url.startsWith(BUCKET) || name === '') return refuse(404, 'NoSuchBucket')
  if (method === 'PUT') objects.set(name, body)
  if (method === 'DELETE') objects.delete(name)
  if (method !== 'GET') return [method === 'PUT' ? 200 : 204, '']
  const found = objects.get(name)
  return found === undefined ? refuse(404, 'NoSuchKey') : [200, found]
}

function refuse(status: number, code: string): [number, string] {
  return [status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`]
}

/** Returns the header `authorization` that a request with these signed headers must have. */
function signRequest({ method, url = '', headers }: IncomingMessage): string {
  const names = /SignedHeaders=([\w;-]+)/.exec(headers.authorization ?? '')?.[1] ?? ''
  const time = String(headers['x-amz-date'])
  const scope = `${time.slice(0, 8)}/${ENV.AWS_REGION}/s3/aws4_request`
  const signed = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const { pathname } = new URL(url, 'http://host')
  const canonical = [method, pathname, '', signed.join(''), names, headers['x-amz-content-sha256']].join('\n')
  const text = ['AWS4-HMAC-SHA256', time, scope, hash(canonical)].join('\n')
  const key = scope
    .split('/')
    .reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${ENV.AWS_SECRET_ACCESS_KEY}`)
  const signature = hmac(key, text).toString('hex')
  return `AWS4-HMAC-SHA256 Credential=${ENV.AWS_ACCESS_KEY_ID}/${scope}, SignedHeaders=${names}, Signature=${signature}`
}

function hash(value: string | Buffer): string {
  return createHash('sha256').update(value).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
