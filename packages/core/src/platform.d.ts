/**
 * The globals that core and wire may use besides the language itself: pure functions of their input, present on every
 * platform. Their type checker knows no others (`lib` has the language alone); scripts/architecture/purity.ts refuses the rest.
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

/** As a type only: making one needs the platform. */
interface AbortSignal {
  readonly aborted: boolean
}
