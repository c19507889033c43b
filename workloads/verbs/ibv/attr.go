//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
*/
import "C"

import (
	"fmt"
	"math/bits"
	"net/netip"
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// defaultHopLimit is used where none is given: zero would not leave the subnet.
const defaultHopLimit = 64

// masks pairs our attribute bits with libibverbs'.
var masks = []struct {
	ours   verbs.QPAttrMask
	theirs C.int
}{
	{verbs.MaskState, C.IBV_QP_STATE},
	{verbs.MaskAccess, C.IBV_QP_ACCESS_FLAGS},
	{verbs.MaskQKey, C.IBV_QP_QKEY},
	{verbs.MaskAH, C.IBV_QP_AV},
	{verbs.MaskPathMTU, C.IBV_QP_PATH_MTU},
	{verbs.MaskTimeout, C.IBV_QP_TIMEOUT},
	{verbs.MaskRetryCnt, C.IBV_QP_RETRY_CNT},
	{verbs.MaskRNRRetry, C.IBV_QP_RNR_RETRY},
	{verbs.MaskRQPSN, C.IBV_QP_RQ_PSN},
	{verbs.MaskMaxRDAtomic, C.IBV_QP_MAX_QP_RD_ATOMIC},
	{verbs.MaskMinRNRTimer, C.IBV_QP_MIN_RNR_TIMER},
	{verbs.MaskSQPSN, C.IBV_QP_SQ_PSN},
	{verbs.MaskMaxDestRDAtomic, C.IBV_QP_MAX_DEST_RD_ATOMIC},
	{verbs.MaskDestQPN, C.IBV_QP_DEST_QPN},
	{verbs.MaskCurState, C.IBV_QP_CUR_STATE},
	{verbs.MaskSQDAsyncNotify, C.IBV_QP_EN_SQD_ASYNC_NOTIFY},
}

const queryMask = C.IBV_QP_STATE | C.IBV_QP_CUR_STATE | C.IBV_QP_ACCESS_FLAGS | C.IBV_QP_QKEY | C.IBV_QP_AV |
	C.IBV_QP_PATH_MTU | C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT | C.IBV_QP_RNR_RETRY | C.IBV_QP_RQ_PSN |
	C.IBV_QP_MAX_QP_RD_ATOMIC | C.IBV_QP_MIN_RNR_TIMER | C.IBV_QP_SQ_PSN | C.IBV_QP_MAX_DEST_RD_ATOMIC | C.IBV_QP_DEST_QPN

// attrToC translates attributes and warns about what is rounded. It runs on the loop.
func (q *qp) attrToC(attr verbs.QPAttr, mask verbs.QPAttrMask) (*C.struct_ibv_qp_attr, C.int, error) {
	a := &C.struct_ibv_qp_attr{
		qp_state:           uint32(attr.State),
		cur_qp_state:       uint32(attr.CurState),
		qkey:               C.uint32_t(attr.QKey),
		rq_psn:             C.uint32_t(attr.RQPSN & 0xffffff),
		sq_psn:             C.uint32_t(attr.SQPSN & 0xffffff),
		dest_qp_num:        C.uint32_t(attr.DestQPN),
		qp_access_flags:    C.uint(attr.Access),
		max_rd_atomic:      C.uint8_t(attr.MaxRDAtomic),
		max_dest_rd_atomic: C.uint8_t(attr.MaxDestRDAtomic),
		retry_cnt:          C.uint8_t(attr.RetryCnt),
		rnr_retry:          C.uint8_t(attr.RNRRetry),
		port_num:           port,
	}
	var m C.int
	for _, pair := range masks {
		if mask&pair.ours != 0 {
			m |= pair.theirs
		}
	}
	if mask&verbs.MaskState != 0 && attr.State == verbs.Init {
		m |= C.IBV_QP_PKEY_INDEX | C.IBV_QP_PORT
	}
	if attr.SQDAsyncNotify {
		a.en_sqd_async_notify = 1
	}
	if mask&verbs.MaskPathMTU != 0 {
		mtu, err := mtuToC(attr.PathMTU)
		if err != nil {
			return nil, 0, err
		}
		a.path_mtu = mtu
	}
	if mask&verbs.MaskAH != 0 {
		ah, err := ahToC(attr.AH)
		if err != nil {
			return nil, 0, err
		}
		a.ah_attr = ah
	}
	if err := checkRange("MaxRDAtomic", attr.MaxRDAtomic, 255); err != nil {
		return nil, 0, err
	}
	if err := checkRange("MaxDestRDAtomic", attr.MaxDestRDAtomic, 255); err != nil {
		return nil, 0, err
	}
	return a, m, q.timersToC(attr, mask, a)
}

func checkRange(what string, v, most int) error {
	if v < 0 || v > most {
		return fmt.Errorf("%s %d is not from 0 to %d", what, v, most)
	}
	return nil
}

func (q *qp) timersToC(attr verbs.QPAttr, mask verbs.QPAttrMask, a *C.struct_ibv_qp_attr) error {
	d := q.pd.dev
	dilation := d.opt.Dilation
	if mask&verbs.MaskTimeout != 0 {
		wall, err := wallTimeout(attr.Timeout, dilation)
		if err != nil {
			return err
		}
		a.timeout = C.uint8_t(wall)
		if note := shortForRxe("local ACK timeout", verbs.AckTimeout(wall), dilation); note != "" && d.rxe {
			d.warn("QP %#x: %s", q.num, note)
		}
	}
	if mask&verbs.MaskRetryCnt != 0 && attr.RetryCnt == 7 && d.rxe {
		d.warn("QP %#x: rxe takes retry_cnt 7 as for ever, not as 7 retries: use 6 or less to see RETRY_EXC_ERR", q.num)
	}
	if mask&verbs.MaskMinRNRTimer != 0 {
		wall, note, err := wallRNRTimer(attr.MinRNRTimer, dilation)
		if err != nil {
			return err
		}
		a.min_rnr_timer = C.uint8_t(wall)
		if note != "" {
			d.warn("QP %#x: %s", q.num, note)
		}
		if note := shortForRxe("RNR delay", verbs.RNRDelay[wall], dilation); note != "" && d.rxe {
			d.warn("QP %#x: %s", q.num, note)
		}
	}
	return nil
}

func (q *qp) attrFromC(a *C.struct_ibv_qp_attr) verbs.QPAttr {
	out := verbs.QPAttr{
		State:           verbs.QPState(a.qp_state),
		CurState:        verbs.QPState(a.cur_qp_state),
		SQDraining:      a.sq_draining != 0,
		QKey:            uint32(a.qkey),
		RQPSN:           uint32(a.rq_psn),
		SQPSN:           uint32(a.sq_psn),
		DestQPN:         uint32(a.dest_qp_num),
		Access:          verbs.Access(a.qp_access_flags),
		MaxRDAtomic:     int(a.max_rd_atomic),
		MaxDestRDAtomic: int(a.max_dest_rd_atomic),
		Timeout:         fabricTimeout(uint8(a.timeout), q.pd.dev.opt.Dilation),
		RetryCnt:        uint8(a.retry_cnt),
		RNRRetry:        uint8(a.rnr_retry),
		AH: verbs.AHAttr{
			SGIDIndex:    int(a.ah_attr.grh.sgid_index),
			HopLimit:     uint8(a.ah_attr.grh.hop_limit),
			TrafficClass: uint8(a.ah_attr.grh.traffic_class),
			FlowLabel:    uint32(a.ah_attr.grh.flow_label),
		},
	}
	if a.path_mtu != 0 {
		out.PathMTU = mtuBytes(a.path_mtu)
	}
	if raw := *(*[16]byte)(unsafe.Pointer(&a.ah_attr.grh.dgid)); raw != [16]byte{} {
		out.AH.DGID = netip.AddrFrom16(raw)
	}
	return out
}

func mtuToC(mtu int) (uint32, error) {
	if mtu < 256 || mtu > 4096 || bits.OnesCount(uint(mtu)) != 1 {
		return 0, fmt.Errorf("path MTU %d is not 256, 512, 1024, 2048 or 4096", mtu)
	}
	return uint32(bits.TrailingZeros(uint(mtu)) - 7), nil
}

func ahToC(attr verbs.AHAttr) (C.struct_ibv_ah_attr, error) {
	var a C.struct_ibv_ah_attr
	if !attr.DGID.IsValid() {
		return a, fmt.Errorf("the address handle has no destination GID")
	}
	if attr.SGIDIndex < 0 || attr.SGIDIndex > 255 {
		return a, fmt.Errorf("source GID index %d is not from 0 to 255", attr.SGIDIndex)
	}
	a.is_global = 1
	a.port_num = port
	a.grh.flow_label = C.uint32_t(attr.FlowLabel & 0xfffff)
	a.grh.sgid_index = C.uint8_t(attr.SGIDIndex)
	a.grh.traffic_class = C.uint8_t(attr.TrafficClass)
	a.grh.hop_limit = C.uint8_t(attr.HopLimit)
	if attr.HopLimit == 0 {
		a.grh.hop_limit = defaultHopLimit
	}
	*(*[16]byte)(unsafe.Pointer(&a.grh.dgid)) = attr.DGID.As16()
	return a, nil
}
