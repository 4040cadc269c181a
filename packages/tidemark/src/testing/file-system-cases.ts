/** Conformance cases for every implementation of the `FileSystem` port. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { FileSystem, OpenFile } from '../storage/file-system.ts'
import { type ConformanceCase, createConformanceCases } from './port-cases.ts'

interface FilePortSubject {
  readonly files: FileSystem
  /** Path of an existing, empty directory. */
  readonly root: string
  end(): Promise<void>
}

export function filePortCases(
  make: () => FilePortSubject | Promise<FilePortSubject>,
): readonly ConformanceCase[] {
  return createConformanceCases(make, (subject) => subject.end(), checks)
}

async function write({ files, root }: FilePortSubject, name: string, text: string): Promise<string> {
  const path = join(root, name)
  const file = await openExisting(files, path, 'create')
  await file.append(Buffer.from(text))
  await file.close()
  return path
}

async function openExisting(
  files: FileSystem,
  path: string,
  purpose: 'append' | 'create' | 'read',
): Promise<OpenFile> {
  const file = await files.open(path, purpose)
  assert.ok(file !== null, `${path} opens to ${purpose}`)
  return file
}

async function read(files: FileSystem, path: string): Promise<string | null> {
  const file = await files.open(path, 'read')
  if (file === null) return null
  const bytes = Buffer.alloc(100)
  const count = await file.read(bytes, 0)
  await file.close()
  return bytes.subarray(0, count).toString()
}

const checks: Readonly<Record<string, (subject: FilePortSubject) => Promise<void>>> = {
  async 'what is appended can be read, from any position'(subject) {
    const path = await write(subject, 'a', 'hello')
    const file = await openExisting(subject.files, path, 'append')
    assert.equal(await file.append(Buffer.from(' world')), 6)
    await file.sync()
    await file.close()
    const reading = await openExisting(subject.files, path, 'read')
    const bytes = Buffer.alloc(4)
    assert.equal(await reading.read(bytes, 3), 4)
    assert.equal(bytes.toString(), 'lo w')
    assert.equal(await reading.read(bytes, 9), 2)
    assert.equal(await reading.read(bytes, 11), 0)
    await reading.close()
  },

  async 'two that append do not overwrite each other'(subject) {
    const path = await write(subject, 'a', '')
    const [one, other] = [
      await openExisting(subject.files, path, 'append'),
      await openExisting(subject.files, path, 'append'),
    ]
    for (const file of [one, other, one]) await file.append(Buffer.from(file === one ? 'x' : 'y'))
    await Promise.all([one.close(), other.close()])
    assert.equal(await read(subject.files, path), 'xyx')
  },

  async 'a file is created once'(subject) {
    const path = await write(subject, 'a', 'first')
    assert.equal(await subject.files.open(path, 'create'), null)
    assert.equal(await read(subject.files, path), 'first')
  },

  async 'what is not there is null, or false, or empty'({ files, root }) {
    const path = join(root, 'missing')
    assert.equal(await files.open(path, 'read'), null)
    assert.equal(await files.open(path, 'append'), null)
    assert.equal(await files.facts(path), null)
    assert.equal(await files.remove(path), false)
    assert.deepEqual(await files.list(path), [])
    await assert.rejects(files.rename(path, join(root, 'x')), { code: 'ENOENT' })
    await assert.rejects(files.link(path, join(root, 'x')), { code: 'ENOENT' })
    await assert.rejects(files.open(join(path, 'x'), 'create'), { code: 'ENOENT' })
    await assert.rejects(files.makeDirectory(join(path, 'x')), { code: 'ENOENT' })
    await assert.rejects(files.touch(path, 0), { code: 'ENOENT' })
    await assert.rejects(files.syncDirectory(path), { code: 'ENOENT' })
  },

  async 'facts tell kind, size and identity'(subject) {
    const { files, root } = subject
    const path = await write(subject, 'a', 'hello')
    const facts = await files.facts(path)
    assert.deepEqual([facts?.kind, facts?.sizeBytes], ['file', 5])
    assert.equal((await files.facts(root))?.kind, 'directory')
    const file = await openExisting(files, path, 'append')
    await file.append(Buffer.from('!'))
    assert.deepEqual({ ...(await file.facts()), modifiedMs: 0 }, { ...facts, sizeBytes: 6, modifiedMs: 0 })
    await file.close()
    const other = await files.facts(await write(subject, 'b', 'hello'))
    assert.notEqual(other?.identity, facts?.identity)
  },

  async 'a rename replaces what has the name, and open files stay with what they openExisting'(subject) {
    const { files } = subject
    const [from, to] = [await write(subject, 'from', 'new'), await write(subject, 'to', 'old')]
    const [moved, replaced] = [await files.facts(from), await openExisting(files, to, 'append')]
    await files.rename(from, to)
    await replaced.append(Buffer.from('!'))
    await replaced.close()
    assert.equal(await read(files, to), 'new')
    assert.equal(await files.facts(from), null)
    assert.equal((await files.facts(to))?.identity, moved?.identity)
  },

  async 'a link is a second name, unless it is taken'(subject) {
    const { files, root } = subject
    const [path, taken] = [await write(subject, 'a', 'x'), await write(subject, 'b', 'y')]
    assert.equal(await files.link(path, taken), false)
    assert.equal(await read(files, taken), 'y')
    const second = join(root, 'c')
    assert.equal(await files.link(path, second), true)
    assert.equal(await files.remove(path), true)
    assert.equal(await read(files, second), 'x')
  },

  async 'of many that link to one name one succeeds'(subject) {
    const { files, root } = subject
    const paths = await Promise.all(
      Array.from({ length: 10 }, (_, index) => write(subject, `f${index}`, 'x')),
    )
    const outcomes = await Promise.all(paths.map((path) => files.link(path, join(root, 'goal'))))
    assert.equal(outcomes.filter(Boolean).length, 1)
  },

  async 'directories are made once and listed'(subject) {
    const { files, root } = subject
    assert.equal(await files.makeDirectory(join(root, 'd')), true)
    assert.equal(await files.makeDirectory(join(root, 'd')), false)
    await write(subject, 'd/inner', '')
    await write(subject, 'a', '')
    await files.syncDirectory(root)
    const entries = [...(await files.list(root))].sort((one, other) => (one.name < other.name ? -1 : 1))
    assert.deepEqual(entries, [
      { name: 'a', kind: 'file' },
      { name: 'd', kind: 'directory' },
    ])
  },

  async 'touch sets the time of the last change'(subject) {
    const path = await write(subject, 'a', '')
    await subject.files.touch(path, 1_700_000_000_000)
    assert.equal((await subject.files.facts(path))?.modifiedMs, 1_700_000_000_000)
  },

  async 'a closed file is of no use'(subject) {
    const path = await write(subject, 'a', '')
    const file = await openExisting(subject.files, path, 'append')
    await file.close()
    await assert.rejects(file.append(Buffer.from('x')))
    await assert.rejects(file.sync())
    assert.equal(await read(subject.files, path), '')
  },
}
