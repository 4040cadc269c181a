/** Renders a Jupyter notebook as cells with their outputs. */

import { formatInteger } from '@tidemark/terminal/render/format-numbers'
import { isObject } from '../json-value.ts'
import { cutText } from './tool-definition.ts'

interface RenderedNotebook {
  readonly text: string
  /** Pictures in the outputs, in order. The text names each at its place. */
  readonly images: readonly { readonly mediaType: string; readonly data: string }[]
}

/** Maximum characters shown of one output of a cell. */
const MAX_OUTPUT_CHARACTERS = 10_000
const MAX_IMAGES = 20
/** Maximum characters of all pictures together, in base64. */
const MAX_IMAGE_CHARACTERS = 8_000_000
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Renders a notebook; null if the text is not the JSON of a notebook. */
export function renderNotebook(json: string): RenderedNotebook | null {
  const cells = readCells(json)
  if (cells === null) return null
  const images: { mediaType: string; data: string }[] = []
  let used = 0
  function addImage(data: string, mediaType: string): string {
    if (images.length >= MAX_IMAGES || used + data.length > MAX_IMAGE_CHARACTERS)
      return '[a picture, left out: there are too many, or they are too large]'
    used += data.length
    return `[picture ${images.push({ mediaType, data })}, below]`
  }
  function render(output: Readonly<Record<string, unknown>>): string {
    const data = isObject(output.data) ? output.data : {}
    const type = IMAGE_TYPES.find((candidate) => joinLines(data[candidate]) !== '')
    const picture = type === undefined ? '' : addImage(joinLines(data[type]).replace(/\s/g, ''), type)
    return [renderOutputText(output, data), picture].filter((text) => text !== '').join('\n')
  }
  const parts = cells.flatMap((cell, index) => {
    const kind = String(cell.cell_type ?? 'unknown')
    const id = typeof cell.id === 'string' ? ` id=${JSON.stringify(cell.id)}` : ''
    const source = `<cell number="${index + 1}" type="${kind}"${id}>\n${joinLines(cell.source)}\n</cell>`
    const outputs = Array.isArray(cell.outputs) ? cell.outputs.filter(isObject) : []
    return [source, ...outputs.map((output) => `<output cell="${index + 1}">\n${render(output)}\n</output>`)]
  })
  return { text: parts.join('\n'), images }
}

function readCells(json: string): readonly Readonly<Record<string, unknown>>[] | null {
  try {
    const notebook: unknown = JSON.parse(json)
    return isObject(notebook) && Array.isArray(notebook.cells) ? notebook.cells.filter(isObject) : null
  } catch {
    return null
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape sequences of colours begin with a control character.
const COLOR_SEQUENCE = /\x1b\[[\d;]*m/g

/** Returns the text of a printed stream, a result or an error. */
function renderOutputText(
  output: Readonly<Record<string, unknown>>,
  data: Readonly<Record<string, unknown>>,
): string {
  const isError = output.output_type === 'error'
  const head = isError ? `${String(output.ename)}: ${String(output.evalue)}\n` : ''
  const body = isError ? joinLines(output.traceback, '\n') : joinLines(output.text ?? data['text/plain'])
  const text = (head + body).replace(COLOR_SEQUENCE, '').trimEnd()
  const left = text.length - MAX_OUTPUT_CHARACTERS
  return left <= 0
    ? text
    : `${cutText(text, MAX_OUTPUT_CHARACTERS)}\n[${formatInteger(left)} more characters]`
}

/** Joins the lines of a text. A notebook stores a text as one string or as a list of lines. */
function joinLines(value: unknown, separator: string = ''): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.map(String).join(separator) : ''
}
