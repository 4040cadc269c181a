/** One sentence in place of content: what is being loaded, or why it could not be. */
export function Notice({ text, isError = false }: { readonly text: string; readonly isError?: boolean }) {
  return (
    <p class={isError ? 'notice bad' : 'notice'} role={isError ? 'alert' : 'status'}>
      {text}
    </p>
  )
}
