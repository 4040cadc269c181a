/** Converts the answer of an MCP server to the result of a tool call: text, pictures, and files for everything else. */
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ToolOutput } from 'tidemark'
import { isObject } from '../json-value.ts'

/** The result of a call in the format of the protocol. Its content is unchecked. */
export interface ServerResult {
  readonly content?: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError?: boolean | undefined
}

type ResultBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly source: object }

/** Pictures that models can see. */
const IMAGE_TYPES: readonly unknown[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Converts a result to the output of a tool. Data that a model cannot read is written to a file in `folder`, and named. */
export async function toToolOutput(result: ServerResult, folder: string): Promise<ToolOutput> {
  const { content = [], structuredContent, isError = false } = result
  const blocks = await Promise.all(content.map((item) => toBlock(item, folder)))
  if (blocks.length === 0 && structuredContent !== undefined)
    blocks.push({ type: 'text', text: JSON.stringify(structuredContent, null, 2) })
  const joined = joinTexts(blocks)
  const [first] = joined
  if (first === undefined) return { content: 'The tool answered without content.', isError }
  // A single text is returned as a string, so that a large one is stored like those of other tools.
  return { content: joined.length === 1 && first.type === 'text' ? first.text : joined, isError }
}

function joinTexts(blocks: readonly ResultBlock[]): readonly ResultBlock[] {
  const joined: ResultBlock[] = []
  for (const block of blocks) {
    const last = joined.at(-1)
    if (block.type === 'text' && last?.type === 'text')
      joined[joined.length - 1] = { type: 'text', text: `${last.text}\n${block.text}` }
    else joined.push(block)
  }
  return joined
}

async function toBlock(item: unknown, folder: string): Promise<ResultBlock> {
  const fields = isObject(item) ? item : {}
  const text = (value: string): ResultBlock => ({ type: 'text', text: value })
  switch (fields.type) {
    case 'text':
      return text(String(fields.text))
    case 'image':
    case 'audio':
      return await toMedia(String(fields.data), String(fields.mimeType), folder)
    case 'resource': {
      const { uri, mimeType, text: content, blob } = isObject(fields.resource) ? fields.resource : {}
      if (typeof content === 'string') return text(`[${uri}]\n${content}`)
      return await toMedia(String(blob ?? ''), String(mimeType ?? 'application/octet-stream'), folder)
    }
    case 'resource_link':
      return text(`[resource ${fields.uri}${fields.name === undefined ? '' : `: ${fields.name}`}]`)
    default:
      return text(JSON.stringify(item))
  }
}

/** Maximum bytes of a picture that providers accept. */
const IMAGE_LIMIT = 3_750_000

async function toMedia(data: string, mimeType: string, folder: string): Promise<ResultBlock> {
  const bytes = Buffer.from(data, 'base64')
  if (IMAGE_TYPES.includes(mimeType) && bytes.length > 0 && bytes.length <= IMAGE_LIMIT)
    return { type: 'image', source: { type: 'base64', media_type: mimeType, data: bytes.toString('base64') } }
  const ending = /^[\w-]+\/([\w-]{1,12})$/.exec(mimeType)?.[1] ?? 'bin'
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  const path = join(folder, `mcp-${hash}.${ending}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(path, bytes, { mode: 0o600 })
  const kind = mimeType.replaceAll(/[^\w/+.-]/g, '')
  return { type: 'text', text: `[${kind}, ${bytes.length} bytes, saved as ${path}]` }
}
