/**
 * The globals that the packages core and wire may use besides the language itself: pure functions of their input, present
 * on every platform. The compiler knows no others there (its `lib` has the language alone), and
 * scripts/architecture/purity.ts refuses the rest.
 */

declare class TextEncoder {
  encode(text: string): Uint8Array
  encodeInto(text: string, bytes: Uint8Array): { readonly read: number; readonly written: number }
}

declare class TextDecoder {
  constructor(label?: string, options?: { readonly fatal?: boolean; readonly ignoreBOM?: boolean })
  decode(bytes?: Uint8Array, options?: { readonly stream?: boolean }): string
}

/** Base64 to a string with one character for each byte. Throws for what is not base64. */
declare function atob(base64: string): string

declare function structuredClone<T>(value: T): T

/** Declared as a type only: core reads signals, and the host creates them. */
interface AbortSignal {
  readonly aborted: boolean
}
