/** What a terminal shows, as an SVG: text as text, blocks as rectangles, so that no font can tear a curve apart. */

interface Style {
  readonly bold: boolean
  readonly dim: boolean
  readonly italic: boolean
  readonly color: string
}

interface Piece extends Style {
  readonly text: string
  readonly column: number
}

const CELL = { width: 8.4, height: 17 }
const MARGIN = 18
const COLORS = {
  back: '#14181d',
  text: '#d6dde4',
  dim: '#7d8894',
  cyan: '#4fb3bf',
  yellow: '#e0b050',
  green: '#7fb86a',
  red: '#e06c6c',
  magenta: '#b48ead',
  blue: '#6fa3dc',
}
const COLOR_NAMES: Readonly<Record<string, keyof typeof COLORS>> = {
  31: 'red',
  32: 'green',
  33: 'yellow',
  34: 'blue',
  35: 'magenta',
  36: 'cyan',
  90: 'dim',
}
const PLAIN: Style = { bold: false, dim: false, italic: false, color: COLORS.text }

export function screenToSvg(output: string, columns: number, title: string): string {
  const rows = output.replace(/\n$/, '').split('\n')
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN)
  const height = Math.ceil(rows.length * CELL.height + 2 * MARGIN)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<rect width="${width}" height="${height}" rx="8" fill="${COLORS.back}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
    ...splitRows(rows).flatMap((pieces, row) => pieces.map((piece) => drawn(piece, row))),
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** Splits each row where its style changes, and where text and blocks meet. A style holds beyond the end of its row. */
function splitRows(rows: readonly string[]): readonly (readonly Piece[])[] {
  let style = PLAIN
  return rows.map((row) => {
    const pieces: Piece[] = []
    let column = 0
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of a terminal begin with one
    for (const part of row.split(/(\u001b\[[\d;]*m)/)) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of a terminal begin with one
      const codes = /^\u001b\[([\d;]*)m$/.exec(part)?.[1]
      if (codes !== undefined) style = codes.split(';').reduce(restyled, style)
      else
        for (const [text] of part.matchAll(/[▁-█━╸]+| +|[^▁-█━╸ ]+(?: [^▁-█━╸ ]+)*/g)) {
          if (text.trim() !== '') pieces.push({ ...style, text, column })
          column += [...text].length
        }
    }
    return pieces
  })
}

function restyled(style: Style, code: string): Style {
  if (code === '1') return { ...style, bold: true }
  if (code === '2') return { ...style, dim: true }
  if (code === '3') return { ...style, italic: true }
  if (code === '22') return { ...style, bold: false, dim: false }
  if (code === '23') return { ...style, italic: false }
  if (code === '0' || code === '') return PLAIN
  const name = COLOR_NAMES[code]
  if (name !== undefined) return { ...style, color: COLORS[name] }
  return code === '39' ? { ...style, color: COLORS.text } : style
}

function drawn(piece: Piece, row: number): string {
  return /^[▁-█━╸]/.test(piece.text) ? blocks(piece, row) : words(piece, row)
}

function words({ text, column, bold, dim, italic, color }: Piece, row: number): string {
  const [x, y] = [MARGIN + column * CELL.width, MARGIN + row * CELL.height + 13]
  const fill = dim && color === COLORS.text ? COLORS.dim : color
  const weight = bold ? ' font-weight="700"' : ''
  const slant = italic ? ' font-style="italic"' : ''
  const length = fixed([...text].length * CELL.width)
  return `<text x="${fixed(x)}" y="${y}" fill="${fill}"${weight}${slant} textLength="${length}" xml:space="preserve">${escaped(text)}</text>`
}

function blocks({ text, column, color }: Piece, row: number): string {
  const path = [...text].map((cell, index) => {
    const { width, height, rise } = sizeOf(cell)
    const [x, y] = [MARGIN + (column + index) * CELL.width, MARGIN + (row + 1) * CELL.height - rise - height]
    return `M${fixed(x)} ${fixed(y)}h${fixed(width)}v${fixed(height)}h${fixed(-width)}z`
  })
  return `<path fill="${color}" d="${path.join('')}"/>`
}

/** `▁` to `█` fill a cell from below; `━` is a bar across its middle, `╸` the left half of one. */
function sizeOf(cell: string): { readonly width: number; readonly height: number; readonly rise: number } {
  if (cell === '━' || cell === '╸') {
    const height = CELL.height / 3
    return { width: cell === '━' ? CELL.width : CELL.width / 2, height, rise: (CELL.height - height) / 2 }
  }
  const eighths = (cell.codePointAt(0) ?? 0) - 0x2580
  return { width: CELL.width, height: (eighths / 8) * CELL.height, rise: 0 }
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
