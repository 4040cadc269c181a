/** What every blob store does. */
import assert from 'node:assert/strict'
import type { BlobStore } from '@tidemark/core'
import { type ConformanceCase, casesFor } from './conformance.ts'

/** A store that is empty at first. */
export interface BlobStoreSubject {
  /** Each stands for a process of its own. */
  open(): Promise<BlobStore>
  end(): Promise<void>
}

export function blobStoreCases(
  make: () => BlobStoreSubject | Promise<BlobStoreSubject>,
): readonly ConformanceCase[] {
  return casesFor(make, (subject) => subject.end(), checks)
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text))
}

async function textOf(store: BlobStore, id: string): Promise<string | null> {
  const bytes = await store.get(id)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

/** SHA-256 of nothing. */
const NO_BYTES = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const NO_IDS = ['', '..', '../../etc/passwd', 'abc', 'G'.repeat(64), '0'.repeat(64), '0'.repeat(63)]

const checks: Readonly<Record<string, (subject: BlobStoreSubject) => Promise<void>>> = {
  async 'what was put can be got, by every user of the store'({ open }) {
    const id = await (await open()).put(bytesOf('hello'))
    const other = await open()
    assert.equal(await textOf(other, id), 'hello')
    assert.equal(await other.has(id), true)
  },

  async 'the same bytes have the same id, others another'({ open }) {
    const store = await open()
    const [one, same, other] = [
      await store.put(bytesOf('a')),
      await store.put(bytesOf('a')),
      await store.put(bytesOf('b')),
    ]
    assert.equal(one, same)
    assert.notEqual(one, other)
    assert.match(one, /^[0-9a-f]{64}$/)
  },

  async 'what is not there is null, whatever its id looks like'({ open }) {
    const store = await open()
    for (const id of NO_IDS) {
      assert.equal(await store.get(id), null, id)
      assert.equal(await store.has(id), false, id)
    }
  },

  async 'what is no Uint8Array is refused, and nothing stored'({ open }) {
    const store = await open()
    for (const given of ['text', [1, 2], 7, null, undefined, { length: 1 }, new Uint16Array(2)] as never[])
      await assert.rejects(
        () => store.put(given),
        { name: 'TidemarkError', code: 'bad-blob' },
        `put ${given}`,
      )
    assert.equal(await store.has(NO_BYTES), false)
    assert.equal(await textOf(store, await store.put(Buffer.from('a Buffer is one'))), 'a Buffer is one')
  },

  async 'nothing at all is a blob too'({ open }) {
    const store = await open()
    const id = await store.put(new Uint8Array())
    assert.deepEqual(await store.get(id), new Uint8Array())
  },

  async 'large ones, and every byte there is'({ open }) {
    const store = await open()
    const bytes = Uint8Array.from({ length: 1_000_003 }, (_, index) => (index * 7) % 256)
    assert.deepEqual(Buffer.from((await store.get(await store.put(bytes))) ?? []).equals(bytes), true)
  },

  async 'the same blob put by many at once is there once, whole'({ open }) {
    const stores = await Promise.all(Array.from({ length: 8 }, open))
    const ids = await Promise.all(stores.map((store) => store.put(bytesOf('shared'))))
    assert.equal(new Set(ids).size, 1)
    for (const [index, store] of stores.entries())
      assert.equal(await textOf(store, ids[index] ?? ''), 'shared')
  },

  async 'bytes that change after they were handed in, or out, change nothing stored'({ open }) {
    const store = await open()
    const bytes = bytesOf('before')
    const putting = store.put(bytes)
    bytes.fill(0)
    const id = await putting
    const got = await store.get(id)
    got?.fill(0)
    assert.equal(await textOf(store, id), 'before')
  },
}
