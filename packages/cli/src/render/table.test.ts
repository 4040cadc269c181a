import picocolors from 'picocolors'
import { expect, it } from 'vitest'
import { momentsIn, type Screen, symbolsFor } from './screen.ts'
import { type Column, table } from './table.ts'

function screen(columns: number): Screen {
  return {
    columns,
    colors: picocolors.createColors(false),
    symbols: symbolsFor({}),
    moments: momentsIn('UTC'),
  }
}

interface Row {
  readonly name: string
  readonly path: string
  readonly calls: number
}

const columns: readonly Column<Row>[] = [
  { title: 'name', text: ({ name }) => name, gives: 'end' },
  { title: 'path', text: ({ path }) => path, gives: 'start' },
  { title: 'calls', text: ({ calls }) => String(calls), align: 'right' },
]
const rows: readonly Row[] = [
  { name: 'a name of some length', path: 'src/web/read-form.ts', calls: 7 },
  { name: '日本語', path: 'x', calls: 12_345 },
]

it('is as wide as what stands in it', () => {
  expect(table(rows, columns, screen(80))).toEqual([
    'name                   path                  calls',
    'a name of some length  src/web/read-form.ts      7',
    '日本語                 x                     12345',
  ])
})

it('gives way where the screen is narrow, the widest column first', () => {
  expect(table(rows, columns, screen(32))).toEqual([
    'name         path          calls',
    'a name of …  …ead-form.ts      7',
    '日本語       x             12345',
  ])
})

it('keeps the least of each column where nothing fits', () => {
  expect(table(rows, columns, screen(10))).toEqual([
    'name    path    calls',
    'a nam…  …rm.ts      7',
    '日本語  x       12345',
  ])
})
