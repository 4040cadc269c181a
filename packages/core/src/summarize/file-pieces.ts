/** Section 3, "Files and code sections": each file with what was done to it and its last known state. */
import { beginning, firstLine } from './cut-text.ts'
import type { Piece } from './piece.ts'
import { isEdited, type TouchedFile } from './touched-file.ts'

export const FILES = 'files'
export const SNIPPETS = 'snippets'
const LINE = 100
const SNIPPET = 1_200

export function filePieces(files: readonly TouchedFile[], ranks: FileRanks): readonly Piece[] {
  const edited = files.filter(isEdited)
  const read = files.filter((file) => !isEdited(file))
  return [
    ...edited.map((file, index) => editedPiece(file, index, ranks)),
    ...edited.flatMap((file, index) => snippetPiece(file, index, ranks)),
    ...read.map((file, index) => readPiece(file, edited.length + index, ranks)),
  ]
}

export interface FileRanks {
  readonly edited: number
  readonly snippets: number
  readonly read: number
}

/** What was done to a file, and the last that is known of it, in one line. */
export function fileLine(file: TouchedFile): string {
  return `- ${file.path}: ${done(file)}${state(file)}`
}

function editedPiece(file: TouchedFile, index: number, ranks: FileRanks): Piece {
  return {
    section: 3,
    rank: ranks.edited,
    order: 2 * index,
    full: fileLine(file),
    short: `- ${file.path}: edited`,
    group: FILES,
    id: file.path,
  }
}

/** The text of the newest change, where a line does not hold it. */
function snippetPiece(file: TouchedFile, index: number, ranks: FileRanks): readonly Piece[] {
  if (file.put === null || file.put.trim().length <= LINE) return []
  const full = `\`\`\`\n${beginning(file.put, SNIPPET)}\n\`\`\``
  const order = 2 * index + 1
  return [{ section: 3, rank: ranks.snippets, order, full, short: null, group: SNIPPETS, id: null }]
}

function readPiece(file: TouchedFile, index: number, ranks: FileRanks): Piece {
  return {
    section: 3,
    rank: ranks.read,
    order: 2 * index,
    full: fileLine(file),
    short: `- ${file.path}`,
    group: FILES,
    id: file.path,
  }
}

function done({ edits, refusedEdits, reads, isMade }: TouchedFile): string {
  const parts = [
    edits > 0 ? `${isMade ? 'written or edited' : 'edited'} ${times(edits)}` : '',
    edits === 0 && refusedEdits > 0 ? 'an edit was tried and did not go through' : '',
    reads > 0 ? `read ${times(reads)}` : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function state({ put, linesRead }: TouchedFile): string {
  if (put !== null && put.trim() !== '') return `; newest text put there: ${firstLine(put, LINE)}`
  return linesRead === null ? '' : `; ${linesRead} line${linesRead === 1 ? '' : 's'} when last read`
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}
