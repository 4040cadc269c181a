/** Counts the operations of a file port in memory, and lets a test make any of them fail or fall short. */
export type OperationKind =
  | 'open'
  | 'read'
  | 'append'
  | 'sync'
  | 'facts'
  | 'rename'
  | 'link'
  | 'remove'
  | 'makeDirectory'
  | 'syncDirectory'
  | 'list'
  | 'touch'

export interface FileOperation {
  readonly kind: OperationKind
  readonly path: string
  /** 1 for the first of all. */
  readonly number: number
  /** Of an append: how many it was given. */
  readonly bytes: number
}

/** What happens instead. An append takes `takes` bytes, then throws the error if there is one. */
export interface Fault {
  readonly error?: Error
  readonly takes?: number
}

export type Interference = (operation: FileOperation) => Fault | undefined

export class Operations {
  readonly counts: Record<OperationKind, number> = {
    open: 0,
    read: 0,
    append: 0,
    sync: 0,
    facts: 0,
    rename: 0,
    link: 0,
    remove: 0,
    makeDirectory: 0,
    syncDirectory: 0,
    list: 0,
    touch: 0,
  }
  /** Which run of the machine this is. */
  boot = 0
  #number = 0
  #interference: Interference | null = null

  interfere(interference: Interference | null): void {
    this.#interference = interference
  }

  restart(): void {
    this.boot += 1
    this.#interference = null
  }

  /** Throws where the operation shall do nothing but fail. */
  begin(kind: OperationKind, path: string): void {
    const fault = this.ask(kind, path)
    if (fault?.error !== undefined) throw fault.error
  }

  ask(kind: OperationKind, path: string, bytes = 0): Fault | undefined {
    this.counts[kind] += 1
    this.#number += 1
    return this.#interference?.({ kind, path, number: this.#number, bytes })
  }
}

/** An error as the system throws it. */
export function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}
