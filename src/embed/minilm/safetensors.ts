/** A tensor as a file of weights has it. */
export interface Tensor {
  dtype: string
  shape: number[]
  bytes: Uint8Array
}

/** The tensors of a file in the form of safetensors, by their names. Their bytes are those of the file. */
export function readSafetensors(file: Uint8Array): Map<string, Tensor> {
  const headerBytes = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true))
  const start = 8 + headerBytes
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, start))) as Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>
  const tensors = new Map<string, Tensor>()
  for (const [name, { dtype, shape, data_offsets: place }] of Object.entries(header)) {
    if (name === '__metadata__') continue
    tensors.set(name, { dtype, shape, bytes: file.subarray(start + place[0], start + place[1]) })
  }
  return tensors
}
