import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { renderBar, renderTable, type TableColumn } from './layout.ts'
import { chooseSymbols, createTimeFormat, type Screen } from './screen.ts'

describe('a bar', () => {
  it.each([
    [0, 10, ''],
    [Number.NaN, 10, ''],
    [1, 0, ''],
    [0.0001, 10, '╸'],
    [0.5, 10, '━━━━━'],
    [0.54, 10, '━━━━━╸'],
    [1, 4, '━━━━'],
    [7, 4, '━━━━'],
  ])('%d of %d', (share, width, expected) => {
    expect(renderBar(share, width, chooseSymbols({}))).toBe(expected)
  })

  it('in ASCII', () => {
    expect(renderBar(0.54, 10, chooseSymbols({ LANG: 'C' }))).toBe('=====-')
  })
})

function screen(columns: number): Screen {
  return {
    columns,
    colors: picocolors.createColors(false),
    symbols: chooseSymbols({}),
    time: createTimeFormat('UTC'),
  }
}

interface Row {
  readonly name: string
  readonly path: string
  readonly calls: number
}

const columns: readonly TableColumn<Row>[] = [
  { title: 'name', text: ({ name }) => name, cutAt: 'end' },
  { title: 'path', text: ({ path }) => path, cutAt: 'start' },
  { title: 'calls', text: ({ calls }) => String(calls), align: 'right' },
]
const rows: readonly Row[] = [
  { name: 'a name of some length', path: 'src/web/read-form.ts', calls: 7 },
  { name: '日本語', path: 'x', calls: 12_345 },
]

describe('a table', () => {
  it('is as wide as its content', () => {
    expect(renderTable(rows, columns, screen(80))).toEqual([
      'name                   path                  calls',
      'a name of some length  src/web/read-form.ts      7',
      '日本語                 x                     12345',
    ])
  })

  it('is cut on a narrow screen, the widest column first', () => {
    expect(renderTable(rows, columns, screen(32))).toEqual([
      'name         path          calls',
      'a name of …  …ead-form.ts      7',
      '日本語       x             12345',
    ])
  })

  it('keeps six cells of each column however narrow the screen is', () => {
    expect(renderTable(rows, columns, screen(10))).toEqual([
      'name    path    calls',
      'a nam…  …rm.ts      7',
      '日本語  x       12345',
    ])
  })
})
