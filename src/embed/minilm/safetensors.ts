/** A tensor in a safetensors file. */
export interface Tensor {
  dtype: string
  shape: number[]
  bytes: Uint8Array
}

/** The tensors of a safetensors file, by name. Their bytes are views of the file. */
export function readSafetensors(file: Uint8Array): Map<string, Tensor> {
  const headerBytes = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true))
  const start = 8 + headerBytes
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, start))) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >
  const tensors = new Map<string, Tensor>()
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (name === '__metadata__') continue
    tensors.set(name, { dtype, shape, bytes: file.subarray(start + offsets[0], start + offsets[1]) })
  }
  return tensors
}
