/**
 * A client of a server, and an API for a proxy, in a thread of their own, so that their work is not counted with that of
 * the server or the proxy.
 */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

export interface PostingThread {
  /** Address of an API that answers every request that fits into a window of a million tokens. */
  readonly api: string
  /** Gives the thread a body to send later, since handing it over takes time of this one. */
  load(text: string): Promise<unknown>
  /** Posts the body. Resolves to the status once the whole answer has come. */
  post(url: string): Promise<unknown>
  close(): Promise<unknown>
}

type Task = { readonly text: string } | { readonly url: string }

export async function startPostingThread(): Promise<PostingThread> {
  const worker = new Worker(new URL(import.meta.url))
  const ask = async (task: Task): Promise<unknown> => {
    const answer = once(worker, 'message')
    worker.postMessage(task)
    return (await answer)[0]
  }
  const [api]: string[] = await once(worker, 'message')
  return {
    api: api ?? '',
    load: (text) => ask({ text }),
    post: (url) => ask({ url }),
    close: () => worker.terminate(),
  }
}

function post(url: string, body: Buffer): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    'x-api-key': 'k',
    'anthropic-version': '2023-06-01',
  }
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const WINDOW = 1_000_000

function buildAnswer(tokens: number): readonly [status: number, body: object] {
  if (tokens > WINDOW) {
    const message = `prompt is too long: ${tokens} tokens > ${WINDOW} maximum`
    return [400, { type: 'error', error: { type: 'invalid_request_error', message } }]
  }
  const content = [{ type: 'text', text: 'Done.' }]
  const end = {
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: tokens, output_tokens: 3 },
  }
  return [200, { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-5', content, ...end }]
}

async function serveAnswers(): Promise<string> {
  const server = createServer((asked, response) => {
    let bytes = 0
    asked.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    asked.on('end', () => {
      const [status, body] = buildAnswer(Math.ceil(bytes / 4))
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

if (!isMainThread) {
  let body = Buffer.alloc(0)
  parentPort?.postMessage(await serveAnswers())
  parentPort?.on('message', async (task: Task) => {
    if ('text' in task) body = Buffer.from(task.text)
    parentPort?.postMessage('url' in task ? await post(task.url, body) : null)
  })
}
