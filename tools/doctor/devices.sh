# shellcheck shell=bash disable=SC2154
# The GPUs, and what CUDA_VISIBLE_DEVICES leaves of them. Sourced by
# tools/doctor.sh.

# Sets pci_gpus: how many NVIDIA GPUs are on the PCI bus, driver or not.
count_pci_gpus() {
  local device
  pci_gpus=0
  for device in "$root"/sys/bus/pci/devices/*; do
    # A display controller, of any kind.
    if [[ "$(first_line "$device/class")" == 0x03* \
      && "$(first_line "$device/vendor")" == 0x10de ]]; then
      pci_gpus=$((pci_gpus + 1))
    fi
  done
}

# Sets gpu_name, gpu_uuid and gpu_about, in nvidia-smi's order.
list_gpus() {
  local name total free capability uuid line folder about
  local fields=name,memory.total,memory.free,compute_cap,uuid
  gpu_name=() gpu_uuid=() gpu_about=()
  if [[ -z "$driver" && -z "$driver_cuda" ]]; then return; fi
  while IFS=, read -r name total free capability uuid; do
    if [[ -z "$uuid" ]]; then continue; fi # a message, not a GPU
    gpu_name+=("$name")
    gpu_uuid+=("${uuid# }")
    about="sm_${capability//[ .]/}"
    if [[ "${total# }" =~ ^[0-9]+$ && "${free# }" =~ ^[0-9]+$ ]]; then
      about+=", $(gib $((free * 1024))) of $(gib $((total * 1024))) GiB free"
    fi
    gpu_about+=("$about")
  done < <([[ -n "$smi" ]] && timeout 60 "$smi" --query-gpu="$fields" \
    --format=csv,noheader,nounits 2> /dev/null)
  if [[ "${#gpu_name[@]}" -gt 0 ]]; then return; fi
  for folder in "$root"/proc/driver/nvidia/gpus/*/; do
    if [[ ! -d "$folder" ]]; then continue; fi
    name="" uuid=""
    while read -r line; do
      case "$line" in
        Model:*) read -r _ name <<< "$line" ;;
        "GPU UUID:"*) read -r _ _ uuid <<< "$line" ;;
      esac
    done 2> /dev/null < "$folder/information"
    gpu_name+=("${name:-a GPU}")
    gpu_uuid+=("$uuid")
    gpu_about+=("its memory is not known without nvidia-smi")
  done
}

# Sets visible: the numbers of the GPUs that CUDA_VISIBLE_DEVICES leaves, in
# CUDA's order; and not_there, the first entry that names no GPU. CUDA takes the
# list up to that one.
apply_visible_devices() {
  local entry i found
  local -a entries
  visible=() not_there=""
  if [[ -z "${CUDA_VISIBLE_DEVICES+set}" ]]; then
    visible=("${!gpu_name[@]}")
    return
  fi
  IFS=', ' read -ra entries <<< "$CUDA_VISIBLE_DEVICES"
  for entry in "${entries[@]}"; do
    found=""
    for i in "${!gpu_name[@]}"; do
      if [[ "$entry" == "$i" || ("$entry" == GPU-* && "${gpu_uuid[i]}" == "$entry"*) ]]; then
        found="$i"
      fi
    done
    if [[ "$entry" == MIG-* && "$real_gpus" -gt 0 ]]; then # part of a GPU
      found="${#gpu_name[@]}"
      gpu_name+=("$entry") gpu_uuid+=("$entry") gpu_about+=("part of a GPU")
    fi
    if [[ -z "$found" ]]; then
      not_there="$entry"
      return
    fi
    visible+=("$found")
  done
}

# Prints the devices. Sets visible and real_gpus.
check_devices() {
  local setting
  list_gpus
  real_gpus="${#gpu_name[@]}"
  apply_visible_devices
  setting="CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-\"\"}"
  if [[ "$real_gpus" -eq 0 && "$driver_ok" == yes ]]; then
    fact devices none "the NVIDIA driver finds no GPU"
    add_gpu "The NVIDIA driver finds no GPU. In a container, start it with
      --gpus=all; elsewhere look at what the kernel says." \
      "${sudo}dmesg | grep -i nvrm"
  elif [[ "$real_gpus" -eq 0 && "$pci_gpus" -gt 0 ]]; then
    fact devices unusable "$(plural "$pci_gpus" "NVIDIA GPU") without a driver"
  elif [[ "$real_gpus" -eq 0 ]]; then
    fact devices "" "no GPU"
  elif [[ "${#visible[@]}" -eq 0 ]]; then
    fact devices hidden "$setting hides the $(plural "$real_gpus" GPU) of this machine"
    add_gpu "$setting hides the $(plural "$real_gpus" GPU) of this machine." \
      "unset CUDA_VISIBLE_DEVICES"
  else
    print_visible_gpus "$setting"
  fi
  fact "" "" "cpu:0 (virtual, $(virtual_cores 1)), or cpu:0 and cpu:1 (virtual,
    $(virtual_cores 2) each)"
}

# print_visible_gpus SETTING
print_visible_gpus() {
  local i label=devices order=""
  for i in "${!visible[@]}"; do
    fact "$label" "" "cuda:$i (real, ${gpu_name[visible[i]]}), ${gpu_about[visible[i]]}"
    label=""
    if [[ "$i" != "${visible[i]}" && "${visible[i]}" -lt "$real_gpus" ]]; then
      order+="cuda:$i is GPU ${visible[i]}, "
    fi
  done
  if [[ -n "$order" ]]; then
    fact "" "" "$1 renumbers them: ${order%, }"
  elif [[ "${#visible[@]}" -lt "$real_gpus" ]]; then
    fact "" "" "$1 leaves ${#visible[@]} of $(plural "$real_gpus" GPU)"
  fi
  if [[ -n "$not_there" ]]; then
    add_gpu "$1: there is no GPU $not_there, and CUDA ignores what follows it." \
      "unset CUDA_VISIBLE_DEVICES"
  fi
  # Among GPUs of one kind the order does not matter.
  for ((i = 1; i < real_gpus; i++)); do
    if [[ "${gpu_name[i]}" != "${gpu_name[0]}" && "${CUDA_DEVICE_ORDER:-}" != PCI_BUS_ID ]]; then
      fact "" "" "CUDA may number the fastest first; CUDA_DEVICE_ORDER=PCI_BUS_ID
        keeps this order"
      return
    fi
  done
}
