//! Every shader parses, validates, and agrees with its host file: parameters, bindings, limits.

use attention_lab::steps::*;
use naga::proc::Layouter;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, GlobalVariable, Handle, Module, StorageAccess, TypeInner};
use std::collections::BTreeMap;
use std::mem::offset_of;

/// What every WebGPU device allows.
const STORAGE_BUFFERS: usize = 8;
const WORKGROUP_BYTES: u32 = 16 << 10;
const WORKGROUP_THREADS: u32 = 256;
/// The least uniform binding that a slot of parameters must fit, and the slots' distance.
const SLOT: u32 = 256;

fn widths() -> [Widths; 5] {
    [(1, 1), (3, 14), (30, 128), (128, 3), (128, 128)].map(|(d, d_v)| Widths::new(d, d_v))
}

fn parse(kernel: &Kernel, widths: Widths) -> (Module, ModuleInfo) {
    let text = kernel.wgsl(widths);
    let name = format!("{} of {}", kernel.entry, kernel.stem);
    let module =
        naga::front::wgsl::parse_str(&text).unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(&text)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(&text)));
    (module, info)
}

/// Members with their offsets, and the size, of a struct of the module.
fn in_wgsl(module: &Module, name: &str) -> (Vec<(String, u32)>, u32) {
    let mut types = module.types.iter().map(|(_, kind)| kind);
    let found = types.find(|kind| kind.name.as_deref() == Some(name)).expect("the struct");
    let TypeInner::Struct { members, span } = &found.inner else { panic!("{name} is no struct") };
    (members.iter().map(|member| (member.name.clone().unwrap_or_default(), member.offset)).collect(), *span)
}

/// The same of a struct in Rust.
macro_rules! in_rust {
    ($kind:ty { $($field:ident),+ $(,)? }) => {
        (vec![$((stringify!($field).to_owned(), offset_of!($kind, $field) as u32)),+], size_of::<$kind>() as u32)
    };
}

#[test]
fn parameters_lie_alike_in_rust_and_in_wgsl() {
    let rust = BTreeMap::from([
        ("key_norm", in_rust!(key_norm::Params { first_group, n, d, flags, eps })),
        (
            "random_rotation_hash",
            in_rust!(random_rotation_hash::Params { first_group, n, tiles, columns, half_0, half_1, half_2, half_3 }),
        ),
        ("bucket_sort", in_rust!(bucket_sort::Params { first_group, n, tiles, shift, from_identity, chunk_len })),
        ("chunked_attention", in_rust!(chunked_attention::Params { first_group, round, scale, self_value, lsh })),
        ("combine_rounds", in_rust!(combine_rounds::Params { first_group, n, first_round })),
        (
            "linear_projection",
            in_rust!(linear_projection::Params { first_group, columns, k, k4, width4, first_slice, biased }),
        ),
        (
            "full_attention",
            in_rust!(full_attention::Params { first_group, n_q, key_start, key_end, flags, scale, self_value }),
        ),
        (
            "materialized_attention",
            in_rust!(materialized_attention::Params {
                first_group,
                rows,
                n_kv,
                row_start,
                query_base,
                query_stride,
                query_count,
                flags,
                scale,
                self_value,
                key_start,
                key_count,
            }),
        ),
        (
            "attention_map",
            in_rust!(attention_map::Params {
                first_group,
                tiles,
                row_start,
                row_count,
                lsh,
                col_start,
                col_count,
                width,
                height,
            }),
        ),
        (
            "map_pixels",
            in_rust!(map_pixels::Params { first_group, rows, n_kv, col_start, col_count, width, row_start }),
        ),
        (
            "approximate_weights",
            in_rust!(approximate_weights::Params {
                first_group,
                tiles,
                rows,
                row_start,
                lsh,
                query_base,
                query_stride,
                query_count,
                scale,
                self_value,
                pad_0,
                pad_1,
                pad_2,
            }),
        ),
        (
            "effective_weights",
            in_rust!(effective_weights::Params { first_group, tiles, n, k, k4, column_start, columns, is_signed }),
        ),
        ("residual", in_rust!(residual::Params { first_group, rows, columns, value_row, target_row, weight, step })),
        ("softmax_backward", in_rust!(softmax_backward::Params { first_group, rows, columns, gradient_row, scale })),
        (
            "adam",
            in_rust!(adam::Params {
                first_group,
                count,
                rate,
                decay_first,
                decay_second,
                unbias_first,
                unbias_second,
                epsilon
            }),
        ),
        ("max_pooling", in_rust!(max_pooling::Params { first_group, n, k, width4, start, count })),
        ("top_keys", in_rust!(top_keys::Params { first_group, rows, n_kv, count, row_start, key_start, key_count })),
        ("top_attention", in_rust!(top_attention::Params { first_group, rows, row_start, count })),
        (
            "matrix_product",
            in_rust!(matrix_product::Params {
                first_group,
                rows,
                columns,
                c_row,
                inner_start,
                inner_end,
                a_row,
                a_column,
                b_row,
                b_column,
                sign,
                accumulate,
                biased,
            }),
        ),
        ("column_sums", in_rust!(column_sums::Params { first_group, row, start, end, accumulate })),
        ("layer_norm", in_rust!(layer_norm::Params { first_group, rows, width, row, eps })),
        ("gelu", in_rust!(gelu::Params { first_group, count })),
        ("cross_entropy", in_rust!(cross_entropy::Params { first_group, rows, row_start, vocabulary, row })),
        ("packed_ids", in_rust!(packed_ids::Params { first_group, count, bits, per_word })),
        ("scaled_copy", in_rust!(scaled_copy::Params { first_group, count, factor })),
        (
            "coverage",
            in_rust!(coverage::Params {
                first_group,
                rows,
                row_start,
                count,
                lsh,
                query_base,
                query_stride,
                query_count,
                key_start,
                key_count,
                pad_0,
                pad_1,
                pad_2,
            }),
        ),
        ("row_terms", in_rust!(row_terms::Params { first_group, n_q, n_kv })),
        (
            "chunked_attention_backward",
            in_rust!(chunked_attention_backward::Params {
                first_group,
                round,
                scale,
                self_value,
                lsh,
                add,
                pad_0,
                pad_1,
                pad_2,
            }),
        ),
        ("key_norm_backward", in_rust!(key_norm_backward::Params { first_group, n, flags, eps, add })),
        (
            "full_attention_backward",
            in_rust!(full_attention_backward::Params {
                first_group,
                n_q,
                n_kv,
                start,
                end,
                add,
                flags,
                scale,
                self_value,
            }),
        ),
    ]);
    let geometry = in_rust!(visibility::Geometry {
        n,
        rounds,
        chunk_len,
        chunks,
        before,
        after,
        flags,
        pair_count_eps,
        slot_start,
        slot_count,
        pad_0,
        pad_1
    });
    for kernel in KERNELS {
        let (module, _) = parse(kernel, Widths::new(3, 14));
        let (mut members, size) = in_wgsl(&module, "Params");
        assert_eq!((members.clone(), size), rust[kernel.stem], "{}", kernel.stem);
        assert_eq!(members.remove(0), ("first_group".to_owned(), 0), "the runner writes the first word");
        assert!(size <= SLOT, "{}: {size} bytes", kernel.stem);
        if members.iter().any(|(name, _)| name == "lsh") {
            assert_eq!(in_wgsl(&module, "Geometry"), geometry, "{}", kernel.stem);
        }
    }
}

#[test]
fn shaders_are_valid_and_bind_what_their_kernels_say() {
    for kernel in KERNELS {
        for widths in widths() {
            let name = format!("{} of {} for {widths:?}", kernel.entry, kernel.stem);
            let (module, info) = parse(kernel, widths);
            let at = module.entry_points.iter().position(|point| point.name == kernel.entry).expect(&name);
            let used = |handle: Handle<GlobalVariable>| !info.get_entry_point(at)[handle].is_empty();
            let mut layouter = Layouter::default();
            layouter.update(module.to_ctx()).expect(&name);
            let mut bindings = BTreeMap::new();
            let mut workgroup_bytes = 0;
            for (_, variable) in module.global_variables.iter().filter(|(handle, _)| used(*handle)) {
                let slot = variable.binding.map(|binding| (binding.group, binding.binding));
                match variable.space {
                    AddressSpace::Uniform => assert_eq!(slot, Some((0, 0)), "{name}"),
                    AddressSpace::Storage { access } => {
                        let access =
                            if access.contains(StorageAccess::STORE) { Access::ReadWrite } else { Access::Read };
                        let (group, number) = slot.expect(&name);
                        assert_eq!(group, 0, "{name}");
                        assert_eq!(bindings.insert(number, access), None, "{name}: binding {number} twice");
                    }
                    AddressSpace::WorkGroup => workgroup_bytes += layouter[variable.ty].size,
                    _ => {}
                }
            }
            let declared: BTreeMap<u32, Access> = (1..).zip(kernel.bindings.iter().copied()).collect();
            assert_eq!(bindings, declared, "{name}");
            assert!(bindings.len() <= STORAGE_BUFFERS, "{name}");
            assert!(workgroup_bytes <= WORKGROUP_BYTES, "{name}: {workgroup_bytes} bytes of workgroup memory");
            let threads: u32 = module.entry_points[at].workgroup_size.iter().product();
            assert!(threads <= WORKGROUP_THREADS, "{name}: {threads} threads");
        }
    }
}

#[test]
fn stems_and_entries_are_unique() {
    let names: std::collections::BTreeSet<_> = KERNELS.iter().map(|kernel| (kernel.stem, kernel.entry)).collect();
    assert_eq!(names.len(), KERNELS.len());
}
