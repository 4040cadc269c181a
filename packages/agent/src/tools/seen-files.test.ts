import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createSeenFiles } from './seen-files.ts'

const shown = { version: 'v1', toolUseId: 'call_1' }

it('a text counts as shown for the same range of the same version', () => {
  const state = createSeenFiles('/')
  state.noteRead('/a', '1+10', shown)
  expect(state.findShownText('/a', '1+10', 'v1')).toEqual(shown)
  expect(state.findShownText('/a', '5+10', 'v1')).toBeNull()
  expect(state.findShownText('/a', '1+10', 'v2')).toBeNull()
  expect(state.findShownText('/b', '1+10', 'v1')).toBeNull()
})

it.each([
  ['a clearing of that call', { kind: 'clear', toolUseIds: ['call_1'], filePaths: [] }, false],
  ['a clearing that names the file', { kind: 'clear', toolUseIds: [], filePaths: ['./a'] }, false],
  ['a clearing of other calls', { kind: 'clear', toolUseIds: ['call_2'], filePaths: ['/b'] }, true],
  ['a compaction', { kind: 'compact', toolUseIds: [], filePaths: [] }, false],
  ['an undo', { kind: 'undo', toolUseIds: [], filePaths: [] }, false],
  ['a rewrite of an unknown kind', { kind: 'rewind', toolUseIds: [], filePaths: [] }, false],
])('after %s, the file is still known, and whether its text counts as shown fits', (_, rewrite, isShown) => {
  const state = createSeenFiles('/')
  state.noteRead('/a', '1+10', shown)
  state.forget(rewrite)
  expect(state.findShownText('/a', '1+10', 'v1') !== null).toBe(isShown)
  expect(state.findSeenVersion('/a')).toBe('v1')
})

it('after a write, texts shown before do not count, and the new version is known', () => {
  const state = createSeenFiles('/')
  state.noteRead('/a', '1+10', shown)
  state.noteWritten('/a', 'v2')
  state.noteWritten('/new', 'v3')
  expect(state.findShownText('/a', '1+10', 'v1')).toBeNull()
  expect([state.findSeenVersion('/a'), state.findSeenVersion('/new'), state.findSeenVersion('/x')]).toEqual([
    'v2',
    'v3',
    null,
  ])
})

it('a resumed session knows the newest versions that were seen before, also after a kill in the middle of a line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-seen-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'seen-files.jsonl')
  const before = createSeenFiles('/', store)
  before.noteRead('/a', '1+10', shown)
  before.noteWritten('/b', 'v2')
  appendFileSync(store, '\n{"path":"/c","ver')
  createSeenFiles('/', store).noteWritten('/a', 'v3')
  const after = createSeenFiles('/', store)
  expect(['/a', '/b', '/c'].map((path) => after.findSeenVersion(path))).toEqual(['v3', 'v2', null])
  expect(after.findShownText('/a', '1+10', 'v3')).toBeNull()
})
